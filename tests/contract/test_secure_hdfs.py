"""What is of HDFS with Kerberos alone: whose folder it is, and tokens in addresses, which errors must not show."""

from __future__ import annotations

from io import BytesIO

import pytest

from infra.hdfs import DATA_NODE
from loader.errors import StoreUnavailable, UsageError
from loader.store.hdfs import HdfsRemote
from loader.store.remote import RemoteStore
from tests.support.secure_hdfs import SecureHdfs

pytestmark = [
    pytest.mark.integration,
    pytest.mark.sweep,
]


def test_the_user_is_that_of_the_ticket(secure: SecureHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    root = f"{secure.root}/users?{secure.webhdfs}&user=hdfs"
    HdfsRemote(root).put("one", BytesIO(b"x"))
    keytab = secure.realm.keytab("stranger")
    monkeypatch.setenv("KRB5CCNAME", str(secure.realm.ticket(keytab, "stranger")))
    with pytest.raises(UsageError, match="denies access to the loader") as caught:
        HdfsRemote(root).get("one")
    assert "user=stranger" in caught.value.why


def test_errors_do_not_show_the_token_of_a_data_node(secure: SecureHdfs) -> None:
    remote = HdfsRemote(f"{secure.root}/tokens?{secure.webhdfs}")
    remote.put("one", BytesIO(b"x"))
    secure.nodes.stop(DATA_NODE)
    try:
        with pytest.raises(StoreUnavailable) as caught:
            remote.put("two", BytesIO(b"x"))
    finally:
        secure.nodes.start()
    assert "op=CREATE&delegation=...&" in caught.value.why
    assert RemoteStore(remote).get("one") == b"x"  # the data node may take some seconds
