#pragma once
// SPDX-License-Identifier: MIT

// The weights of a store as device kernels read them: one copy for all plans over that store.
//
// The host's values stay the truth that is saved and published: an edit of the store is sent to the device by the next
// forward(); what the device's optimiser has changed is fetched into the store when somebody asks for it.

#include <memory>
#include <mutex>

#include <engram/device/executor.hpp>
#include <engram/graph/parameters.hpp>

namespace engram {

template <class Backend>
class device_weights {
public:
    using real = typename Backend::real;

    explicit device_weights(std::ptrdiff_t count) : values_(static_cast<std::size_t>(count)) {}

    /// The copy that the plans over `store` share; made by the first of them. The store may not grow afterwards. Throws
    /// where it has chosen products that a device has not.
    static std::shared_ptr<device_weights> of(parameters<real>& store) {
        require(store.products() == product_precision::full, "plan: products in bfloat16 are the host's; the device '",
                Backend::name, "' has float ones");
        auto shared = std::static_pointer_cast<device_weights>(store.on_device);
        if (!shared) store.on_device = shared = std::make_shared<device_weights>(store.flat_size());
        require(shared->size() == store.flat_size(), "device: the store has grown from ", shared->size(), " to ",
                store.flat_size(), " numbers since a plan was made of it; declare all parameters first");
        return shared;
    }

    real* data() { return values_.data(); }
    std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(values_.size()); }

    /// Sends the host's values if they are newer; what `on` is given next sees the newest. Threads with programs of
    /// their own may call it together.
    void refresh(executor<Backend>& on, const parameters<real>& store) {
        const std::lock_guard lock(refreshing_);
        written_.await(on);
        if (version_ == store.version()) return;
        on.upload(store.flat().data(), values_.data(), size());
        written_.record(on);
        version_ = store.version();
        newer_ = false;
    }
    /// Says that kernels of `on` change the values here.
    void changed(executor<Backend>& on) {
        written_.record(on);
        newer_ = true;
    }
    /// Brings what the device has changed into the store, unless the host has edited it since: its values are sent
    /// then.
    void fetch(executor<Backend>& on, parameters<real>& store) {
        if (!newer_ || version_ != store.version()) return;
        written_.await(on);
        {
            auto edit = store.edit();
            on.download(values_.data(), edit.flat().data(), size());
        }
        version_ = store.version();
        newer_ = false;
    }

private:
    typename executor<Backend>::buffer values_;
    typename executor<Backend>::fence written_;
    std::mutex refreshing_;
    std::int64_t version_ = -1;
    bool newer_ = false;
};

}  // namespace engram
