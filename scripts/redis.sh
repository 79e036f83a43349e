#!/usr/bin/env bash
# The Redis of content_pipeline_tests/machines: the server from the system's packages, unpacked below
# build/redis, where no service manager starts it. For Debian and Ubuntu. Run it again at any time:
# it does what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

FOLDER=build/redis

[[ -f $FOLDER/ready ]] && { echo "Redis is in $FOLDER"; exit 0; }
command -v redis-server > /dev/null && { echo "Redis is installed"; exit 0; }
command -v apt-get > /dev/null || { echo "the packages are Debian's: install redis-server"; exit 1; }
# The program is in redis-tools, under another name; the package of the server is the service.
if ! command -v redis-check-rdb > /dev/null; then
	echo "installing redis-tools"
	[[ $(id -u) == 0 ]] || { echo "as root: apt-get install redis-tools"; exit 1; }
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-tools > /dev/null
fi
mkdir -p "$FOLDER"
ln -sf "$(command -v redis-check-rdb)" "$FOLDER/redis-server"
touch "$FOLDER/ready"
echo "Redis is in $FOLDER"
