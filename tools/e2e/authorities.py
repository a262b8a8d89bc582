# An authority of the test's own: its certificate, those that it gives to nodes, and its list of revoked ones.
# SPDX-License-Identifier: Apache-2.0
import datetime

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


def _pem(thing):
    return thing.public_bytes(serialization.Encoding.PEM)


class Authority:
    def __init__(self, folder, domain):
        folder.mkdir(exist_ok=True)
        self.folder, self.domain = folder, domain
        self.ca_file, self.crl_file = folder / "ca.pem", folder / "crl.pem"
        self._key = ed25519.Ed25519PrivateKey.generate()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "CA of a test")])
        ca = self._builder(self._name, self._key.public_key())
        ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.ca_file.write_bytes(_pem(ca.sign(self._key, None)))
        self.revoke()

    def _builder(self, subject, key, days=29.5):  # not whole days: what is left is the same number for hours
        now = datetime.datetime.now(datetime.timezone.utc)
        return (x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
                .serial_number(x509.random_serial_number()).not_valid_before(now - _DAY)
                .not_valid_after(now + days * _DAY))  # fmt: skip

    def give(self, name):
        """(certificate, key) of a node: files, and the certificate as an object."""
        key = ed25519.Ed25519PrivateKey.generate()
        names = x509.SubjectAlternativeName([x509.DNSName(f"{name}.{self.domain}")])
        certificate = self._builder(x509.Name([]), key.public_key()).add_extension(names, critical=True)
        certificate = certificate.sign(self._key, None)
        files = self.folder / f"{name}.pem", self.folder / f"{name}-key.pem"
        files[0].write_bytes(_pem(certificate))
        files[1].write_bytes(key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))  # fmt: skip
        return *files, certificate

    def revoke(self, *certificates):
        now = datetime.datetime.now(datetime.timezone.utc)
        crl = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        crl = crl.last_update(now - _DAY).next_update(now + _DAY)
        for one in certificates:
            crl = crl.add_revoked_certificate(x509.RevokedCertificateBuilder().serial_number(one.serial_number)
                                              .revocation_date(now).build())  # fmt: skip
        made = self.crl_file.with_suffix(".new")
        made.write_bytes(_pem(crl.sign(self._key, None)))
        made.rename(self.crl_file)
