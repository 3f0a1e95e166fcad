#!/bin/sh
# conan.sh <source> <build> <scratch>: the Conan recipe makes its package from system libraries, test_package trains one
# update with it, and what cannot work is refused with a sentence. Exits with 77 (skipped) where there is no Conan 2.
set -eu
source=$1 build=$2 scratch=$3

conan=
for candidate in "$build/conan-venv/bin/conan" "$(command -v conan || true)"; do
    [ -x "$candidate" ] || continue
    case $("$candidate" --version) in "Conan version 2."*) conan=$candidate ;; esac
    [ -z "$conan" ] || break
done
if [ -z "$conan" ]; then
    echo "skipped: no Conan 2, neither on the PATH nor in $build/conan-venv (./dev test installs it there if it can)"
    exit 77
fi

# A copy, because Conan builds test_package in place; a home of its own, because the user's is none of a test's business.
rm -rf "$scratch"
mkdir -p "$scratch/engram"
cd "$source"
cp -r CMakeLists.txt LICENSE conanfile.py conan cmake include programs third_party examples test_package "$scratch/engram"
cd "$scratch/engram"
export CONAN_HOME="$scratch/home"
unset CXXFLAGS CPPFLAGS LDFLAGS CMAKE_PREFIX_PATH CUDACXX
profile="-pr:a conan/profile-system"

# refused <sentence> <options of conan install>...
refused() {
    sentence=$1
    shift
    if said=$("$conan" install . $profile -of "$scratch/refused" "$@" 2>&1); then
        echo "conan install $* succeeds, but should say: $sentence"
        exit 1
    fi
    case $said in *"$sentence"*) ;; *) printf 'conan install %s should say: %s\n%s\n' "$*" "$sentence" "$said"; exit 1 ;; esac
}
refused "Current cppstd (17) is lower than the required C++ standard (20)" -s:a compiler.cppstd=17
CUDACXX=$scratch/no/nvcc refused "with_cuda=True needs nvcc, which was not found" -o "&:with_cuda=True"

"$conan" create . $profile -s:a build_type=Debug > "$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
# The id is the SHA-1 of nothing: one package serves every setting.
for expected in "Package 'da39a3ee5e6b4b0d3255bfef95601890afd80709' created" \
                'one update of [0-9]\{1,\} parameters: loss -\{0,1\}[0-9.]\{1,\}'; do
    grep "$expected" "$scratch/log" || { echo "conan create did not say: $expected"; cat "$scratch/log"; exit 1; }
done
