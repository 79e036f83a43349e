"""Mails about what was published: what they say, and what a mail server's answer means."""

import time
from typing import Any

import pytest

from content_pipeline.adapters.hooks.mail import MAX_LISTED, Mail, MailServer
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import SiteNews
from content_pipeline_tests.adapters.hooks.listings import listed
from content_pipeline_tests.adapters.hooks.news import TERMS, clock, news
from content_pipeline_tests.adapters.hooks.smtp import CERTIFICATE, Mailbox, mail_server
from content_pipeline_tests.adapters.llm.loopback import free_port

F = FailureClass
PASSWORD = "correct horse battery"


def mail(port: int, *, to: tuple[str, ...] = ("desk@example.org",), **more: Any) -> Mail:
    server: dict[str, Any] = {"host": "127.0.0.1", "port": port, "encryption": "none"}
    server |= {"deadline_s": 5.0, **more}
    return Mail(
        MailServer(**server),
        kind="mail",
        terms=TERMS,
        sender="pipeline@example.com",
        to=to,
        clock=clock,
    )


def failure_of(box: Mailbox, **more: Any) -> Failure:
    with pytest.raises(CallFailed) as failed:
        mail(box.port, **more).tell(news())
    assert PASSWORD not in repr(failed.value) + repr(failed.value.failure)
    assert failed.value.__suppress_context__
    return failed.value.failure


def text_of(box: Mailbox) -> str:
    (message,) = box.messages
    return str(message.get_content()).replace("\r\n", "\n")


def test_a_mail_says_what_was_published_and_taken_off() -> None:
    with mail_server() as box:
        told = mail(box.port, to=("a@example.org", "b@example.org")).tell(
            news([listed("Österreich", path="/austria/")], withdrawn=["/belgium/"])
        )
    (message,) = box.messages
    assert message["Subject"] == "Countries: 1 published, 1 taken off"
    assert message["From"] == "pipeline@example.com"
    assert message["To"] == "a@example.org, b@example.org"
    assert message["Date"] == "Mon, 02 Mar 2026 09:30:00 +0000"
    assert told.location == message["Message-ID"]
    text = text_of(box)
    assert "Published (1):" in text
    assert "Österreich\n  https://example.com/austria/" in text
    assert "Taken off the site (1):\n\nhttps://example.com/belgium/" in text
    assert box.sessions == 1


def test_the_same_news_has_the_same_id_and_other_news_another() -> None:
    with mail_server() as box:
        for delivery_id in ("aa", "aa", "bb"):
            mail(box.port).tell(news(delivery_id=delivery_id))
    ids = [str(message["Message-ID"]) for message in box.messages]
    assert ids == ["<aa@example.com>", "<aa@example.com>", "<bb@example.com>"]


def test_a_long_list_is_cut_and_counted() -> None:
    pages = [listed(f"P{number:04}") for number in range(MAX_LISTED + 7)]
    with mail_server() as box:
        mail(box.port).tell(news(pages))
    text = text_of(box)
    assert f"Published ({MAX_LISTED + 7}):" in text
    assert "and 7 more" in text
    assert text.count("https://") == MAX_LISTED


@pytest.mark.parametrize("title", ["A\r\nBcc: everybody@example.org", "A\nB", "x" * 500])
def test_a_title_cannot_become_a_header(title: str) -> None:
    with mail_server() as box:
        mail(box.port).tell(news([listed("P", path="/p/")], site_title=title))
    (message,) = box.messages
    assert message["Bcc"] is None
    assert "1 published" in message["Subject"]


def test_a_login_is_sent_when_there_is_one() -> None:
    with mail_server() as box:
        mail(box.port, user="pipeline", password=PASSWORD).tell(news())
    assert box.logins == [f"\0pipeline\0{PASSWORD}"]


def test_nobody_logs_in_without_a_user() -> None:
    with mail_server() as box:
        mail(box.port).tell(news())
    assert "AUTH" not in box.commands


@pytest.mark.parametrize(
    ("answers", "failure_class"),
    [
        ({"CONNECT": b"421 too busy"}, F.TRANSIENT),
        ({"CONNECT": b"554 go away"}, F.REQUEST),
        ({"MAIL": b"451 try later"}, F.TRANSIENT),
        ({"MAIL": b"550 not you"}, F.REQUEST),
        ({"MAIL": b"530 log in first"}, F.AUTH),
        ({"RCPT": b"550 nobody here"}, F.REQUEST),
        ({"RCPT": b"450 mailbox busy"}, F.TRANSIENT),
        ({"DATA": b"452 full"}, F.TRANSIENT),
        ({".": b"554 this is spam"}, F.REQUEST),
        ({".": b"451 greylisted"}, F.TRANSIENT),
        ({"CONNECT": b"nonsense"}, F.TRANSIENT),
    ],
)
def test_every_answer_has_a_class(answers: dict[str, bytes], failure_class: FailureClass) -> None:
    with mail_server(answers) as box:
        failure = failure_of(box)
    assert failure.failure_class is failure_class
    assert failure.message.startswith("The mail server 127.0.0.1")
    for said in answers.values():
        assert said.decode()[4:] not in failure.message
    assert len(box.messages) == (1 if "." in answers else 0)


def test_a_refused_login_is_a_persons_to_correct() -> None:
    with mail_server({"AUTH": b"535 bad: " + PASSWORD.encode()}) as box:
        failure = failure_of(box, user="pipeline", password=PASSWORD)
    assert failure.failure_class is F.AUTH
    assert box.messages == []


def test_encryption_that_is_not_offered_sends_neither_password_nor_mail() -> None:
    with mail_server() as box:
        failure = failure_of(box, encryption="starttls", user="pipeline", password=PASSWORD)
    assert failure.failure_class is F.REQUEST
    assert "correct `encryption`" in failure.message
    assert (box.logins, box.messages) == ([], [])


@pytest.mark.parametrize("encryption", ["starttls", "tls"])
def test_login_and_mail_go_encrypted(encryption: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with mail_server(encryption=encryption) as box:
        sender = mail(box.port, encryption=encryption, user="pipeline", password=PASSWORD)
        sender.tell(news())
    assert box.logins == [f"\0pipeline\0{PASSWORD}"]
    assert len(box.messages) == 1
    assert ("STARTTLS" in box.commands) is (encryption == "starttls")


@pytest.mark.parametrize("encryption", ["starttls", "tls"])
def test_a_server_that_is_not_who_it_should_be_gets_nothing(encryption: str) -> None:
    with mail_server(encryption=encryption) as box:
        failure = failure_of(box, encryption=encryption, user="pipeline", password=PASSWORD)
    assert failure.failure_class is F.REQUEST
    assert "its certificate is not valid" in failure.message
    assert (box.logins, box.messages) == ([], [])


def test_one_refused_address_of_two_is_told() -> None:
    class OnlyFirst(dict[str, bytes]):
        asked = 0

        def get(self, word: str, usual: Any = None) -> Any:
            OnlyFirst.asked += word == "RCPT"
            return b"550 nobody" if word == "RCPT" and OnlyFirst.asked == 2 else usual

    with mail_server(OnlyFirst()) as box:
        told = mail(box.port, to=("a@example.org", "b@example.org")).tell(news())
    assert told.location.endswith("refused for 1 of 2 addresses")
    assert len(box.messages) == 1


@pytest.mark.parametrize("drips_at", ["CONNECT", "EHLO", "MAIL", "."])
def test_a_server_that_drips_is_left_at_the_deadline(drips_at: str) -> None:
    with mail_server(drips_at=drips_at) as box:
        began = time.monotonic()
        failure = failure_of(box, deadline_s=0.3)
        assert time.monotonic() - began < 30, "its line never ends"
    assert failure.failure_class is F.TRANSIENT


def test_a_server_that_is_not_there_was_sent_nothing() -> None:
    with pytest.raises(CallFailed) as failed:
        mail(free_port()).tell(news())
    assert failed.value.failure.failure_class is F.NOT_SENT


def test_closing_is_harmless() -> None:
    hook = mail(1)
    hook.close()
    hook.close()


def sent_twice(box: Mailbox, told: SiteNews) -> list[bytes]:
    for _ in range(2):
        mail(box.port).tell(told)
    return [message.as_bytes() for message in box.messages]


def test_a_repeated_mail_is_the_same_to_the_letter() -> None:
    with mail_server() as box:
        first, second = sent_twice(box, news([listed("Austria")]))
    assert first == second
