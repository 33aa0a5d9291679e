#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# install.sh ROOT: what `make install DESTDIR=ROOT prefix=/usr` put there is enough to compile and run a
# user's program, in C and C++, with the shared library and with the archive; and man and shells find what is theirs.
set -eu

root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

pc=$(find "$root" -name libnt-log.pc)
[ -n "$pc" ] || { echo "install: no libnt-log.pc" >&2; exit 1; }
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR="$root" NTSCOPE=off
# pkg-config leaves the system's own folders out, also below another root.
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
flags=$(pkg-config --cflags libnt-log)
libraries=$(pkg-config --libs libnt-log)
folder=$root$(pkg-config --variable=libdir libnt-log | sed "s,^$root,,")

cat >"$work/user.c" <<'EOT'
#include <nt/log.h>

int main(void)
{
    nt_log *log = NULL;
    (void)nt_log_open(NULL, &log);
    nt_object_options options = NT_OBJECT_OPTIONS_INIT;
    options.name = "orders";
    nt_object object = nt_object_new(log, &options);
    nt_object_count(object, NT_WRITE, 10);
    nt_object_close(object);
    nt_log_close(log);
    return 0;
}
EOT

# shellcheck disable=SC2086 # lists of flags
for compiler in 'gcc -std=c17' 'g++ -std=c++17 -x c++'; do
    $compiler $flags "$work/user.c" -x none $libraries -o "$work/shared"
    LD_LIBRARY_PATH="$folder" "$work/shared"
    $compiler $flags "$work/user.c" -x none "$folder/libnt-log.a" -o "$work/static"
    "$work/static"
done
"$root/usr/bin/ntscope" --help >/dev/null

commands=$("$root/usr/bin/ntscope" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
[ -n "$commands" ] || { echo "install: no commands" >&2; exit 1; }
# shellcheck disable=SC2046 # a list of words
for page in man1/ntscope.1 $(printf 'man1/ntscope-%s.1 ' $commands) man3/nt_log.3 man3/nt_link.3 \
    man5/ntlog.5 man5/ntrec.5; do
    mandoc -Tlint -Wwarning "$root/usr/share/man/$page"
done
grep -qx '\.so man3/nt_log\.3' "$root/usr/share/man/man3/nt_object_count.3"
bash -n "$root/usr/share/bash-completion/completions/ntscope"
zsh -n "$root/usr/share/zsh/site-functions/_ntscope"
echo "install: complete"
