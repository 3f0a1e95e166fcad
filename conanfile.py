import os
import re
import shutil

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import load

required_conan_version = ">=2.0"


class Engram(ConanFile):
    """The headers, and CMake's package files. With system libraries: -pr:a conan/profile-system."""

    name = "engram"
    description = "Agents and sequence models that remember: a header-only C++20 library"
    license = "MIT"
    topics = ("reinforcement-learning", "memory", "sequence-models", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    # Headers are the same with and without CUDA: the option makes sure that a consumer's nvcc is there.
    options = {"with_cuda": [True, False]}
    default_options = {"with_cuda": False, "boost/*:header_only": True, "xtensor/*:xsimd": False}
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "programs/*", "third_party/*"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include/engram/version.hpp"))
        self.version = ".".join(re.findall(r"#define ENGRAM_VERSION_\w+ (\d+)", header))

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        for library in ("eigen/[>=3.4 <4]", "xtensor/[>=0.24 <0.26]", "boost/[>=1.74 <2]",
                        "nlohmann_json/[>=3.10 <4]", "zlib/[>=1.2.11 <2]"):
            self.requires(library, transitive_headers=True, transitive_libs=True)

    def build_requirements(self):
        self.test_requires("doctest/[>=2.4 <3]")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.options.with_cuda and not shutil.which(os.environ.get("CUDACXX", "nvcc")):
            raise ConanInvalidConfiguration("engram: with_cuda=True needs nvcc, which was not found; put it on the PATH "
                                            "or name it in CUDACXX")

    def package_id(self):
        self.info.clear()

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        for part in ("TESTS", "PROGRAMS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"ENGRAM_BUILD_{part}"] = False
        toolchain.cache_variables["ENGRAM_CUDA"] = False
        toolchain.generate()

    def package(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.install()

    def package_info(self):
        # engram's own package files find what it needs and define engram_add_ablation().
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["share/engram/cmake"]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
