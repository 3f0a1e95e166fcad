#!/bin/sh
# Builds the site of docs/ and the headers into a folder (build/docs when none is named). A warning is an error; without
# Doxygen it says so and ends with 77, which CTest calls skipped.
set -eu
cd "$(dirname "$0")/.."
command -v doxygen >/dev/null || { echo "docs: doxygen is not installed (./dev docs installs it)" >&2; exit 77; }
ENGRAM_DOCS=${1:-build/docs}
ENGRAM_VERSION=$(awk '/define ENGRAM_VERSION_/ { printf "%s%s", dot, $3; dot = "." }' include/engram/version.hpp)
# The navigation names pages as Doxygen 1.9.4 does; later versions name them otherwise and get their own navigation.
case $(doxygen --version) in 1.9.4*) ENGRAM_LAYOUT=docs/layout.xml ;; *) ENGRAM_LAYOUT= ;; esac
export ENGRAM_DOCS ENGRAM_VERSION ENGRAM_LAYOUT
mkdir -p "$ENGRAM_DOCS"
doxygen docs/Doxyfile
# Doxygen leaves a picture that it does not find as it was written, without a word.
for page in "$ENGRAM_DOCS"/html/md_*.html "$ENGRAM_DOCS"/html/index.html; do
    for picture in $(sed -n 's/.*<img src="\([^"]*\)".*/\1/p' "$page"); do
        [ -e "$ENGRAM_DOCS/html/$picture" ] || { echo "docs: $page shows $picture, which is not there" >&2; exit 1; }
    done
done
echo "$ENGRAM_DOCS/html/index.html"
