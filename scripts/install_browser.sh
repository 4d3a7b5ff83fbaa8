#!/bin/sh
# Brings what the browser tests need: Chromium and its driver, of Debian's packages.
# They are installed as root alone. Else what is missing is said, and the tests are skipped, unless
# DELTA_DS_REQUIRE_BROWSER=1 makes them a must.
set -eu

missing() {
	! { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null ||
		! command -v chromedriver >/dev/null
}

missing || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q -o Acquire::Retries=3 >/dev/null
	apt-get install -q -y --no-install-recommends -o Acquire::Retries=3 chromium chromium-driver >/dev/null
fi
if missing; then
	echo "There is no chromium with chromedriver here: on Debian, apt-get install chromium chromium-driver" >&2
	[ "${DELTA_DS_REQUIRE_BROWSER:-}" != 1 ] || exit 1
	echo "Without them the browser tests are skipped." >&2
fi
