"""A client's half of TLS 1.3 behind the handshake, which may change its keys; `ssl` cannot."""

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

APPLICATION_DATA = 23
HANDSHAKE = 22
ALERT = 21
KEY_UPDATE_ANSWERED = b"\x18\0\0\x01\x01"
CIPHER = "TLS_AES_256_GCM_SHA384"


class Tls13Writer:
    """
    Encrypts what the client sends.

    Args:
        key_log: what `SSLContext.keylog_filename` received of one handshake.
        records: that the client has sent behind the handshake.
    """

    def __init__(self, key_log, records=0):
        (line,) = [x for x in key_log.splitlines() if x.startswith("CLIENT_TRAFFIC_SECRET_0")]
        self._set_secret(bytes.fromhex(line.split()[2]))
        self._records = records

    def send(self, data):
        """Return *data* as one record."""
        return self._record(data, APPLICATION_DATA)

    def alert(self, data):
        """Return an alert: level and description."""
        return self._record(data, ALERT)

    def key_update(self):
        """Return a change of keys that asks the server to change its own."""
        record = self._record(KEY_UPDATE_ANSWERED, HANDSHAKE)
        self._set_secret(_expand(self._secret, b"traffic upd", 48))
        return record

    def _set_secret(self, secret):
        self._secret, self._records = secret, 0
        self._cipher = AESGCM(_expand(secret, b"key", 32))
        self._iv = int.from_bytes(_expand(secret, b"iv", 12))

    def _record(self, data, kind):
        head = bytes([APPLICATION_DATA, 3, 3]) + (len(data) + 17).to_bytes(2)
        nonce = (self._iv ^ self._records).to_bytes(12)
        self._records += 1
        return head + self._cipher.encrypt(nonce, data + bytes([kind]), head)


def _expand(secret, label, size):
    label = b"tls13 " + label
    info = size.to_bytes(2) + bytes([len(label)]) + label + b"\0"
    return HKDFExpand(SHA384(), size, info).derive(secret)
