"""Codes that log one browser in."""

from contextbase.interfaces.api.login_codes import CODE_MINUTES, LoginCodes


def test_a_code_is_good_once_and_not_for_long() -> None:
    now = 0.0
    codes = LoginCodes(lambda: now)
    used, late = codes.make(), codes.make()
    assert [codes.take(used), codes.take(used), codes.take(""), codes.take("\ud800")] == [True, False, False, False]
    now = CODE_MINUTES * 60 + 1
    assert not codes.take(late)
