#!/bin/sh
# Make an authority and the certificate of the source's server, next to this file in tls/: the loader sends rows and its
# password only to a server that it can verify. Arguments: the server's names; by default that of its service.
set -eu
cd "$(dirname "$0")"
names=$(printf ',DNS:%s' "${@:-mysql}")
umask 022
mkdir -p tls
key="-newkey rsa:2048 -nodes -days 3650"
# shellcheck disable=SC2086  # several words
openssl req -x509 $key -keyout tls/ca-key.pem -out tls/ca.pem -subj "/CN=authority of the example" \
    -addext keyUsage=critical,keyCertSign 2>/dev/null
# shellcheck disable=SC2086
openssl req -x509 $key -keyout tls/server-key.pem -out tls/server.pem -subj "/CN=server of the example" \
    -addext "subjectAltName=${names#,}" -addext basicConstraints=CA:FALSE -CA tls/ca.pem -CAkey tls/ca-key.pem 2>/dev/null
rm tls/ca-key.pem
# The server's image runs as another user than you.
chmod 644 tls/server-key.pem
