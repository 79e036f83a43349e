#!/usr/bin/env bash
# The real WordPress of content_pipeline_tests/real_cms: PHP and MariaDB from the system's packages,
# WordPress itself unpacked below build/wordpress, where no web server and no other site knows of it.
# For Debian and Ubuntu. Run it again at any time: it does what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

FOLDER=build/wordpress

command -v apt-get > /dev/null || { echo "the packages are Debian's: apt-get is missing here"; exit 1; }

missing=()
has_module() { [[ $'\n'"$modules"$'\n' == *$'\n'"$1"$'\n'* ]]; }
modules=$(php -m 2> /dev/null || true)
command -v php > /dev/null || missing+=(php-cli)
has_module mysqli || missing+=(php-mysql)
has_module curl || missing+=(php-curl)
has_module dom || missing+=(php-xml)
has_module mbstring || missing+=(php-mbstring)
PATH=$PATH:/usr/sbin command -v mariadbd > /dev/null || missing+=(mariadb-server-core)
command -v mariadb > /dev/null || missing+=(mariadb-client-core)
if ((${#missing[@]})); then
	echo "installing ${missing[*]}"
	[[ $(id -u) == 0 ]] || { echo "as root: apt-get install ${missing[*]}"; exit 1; }
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
fi

if [[ ! -f $FOLDER/ready ]]; then
	echo "unpacking WordPress"
	rm -rf "$FOLDER"
	mkdir -p "$FOLDER/packages"
	apt-cache show wordpress > /dev/null 2>&1 || apt-get update -qq
	# The theme that this release recommends is the default of its WordPress.
	theme=$(apt-cache depends wordpress | sed -n 's/.*\(wordpress-theme-[a-z]*\)$/\1/p' | sed -n 1p)
	(cd "$FOLDER/packages" && apt-get download -qq wordpress php-getid3 "$theme" 2> /dev/null)
	for package in "$FOLDER"/packages/*.deb; do dpkg-deb -x "$package" "$FOLDER"; done
	rm -r "$FOLDER/packages"
	touch "$FOLDER/ready"
fi
echo "WordPress is in $FOLDER"
