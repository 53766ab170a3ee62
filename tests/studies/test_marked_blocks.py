import pytest

from coach_rl.core.errors import ConfigurationError
from coach_rl.studies.marked_blocks import write_blocks

PAGE = "# A page\r\nbefore\r\n<!-- study: one -->\r\nold\r\n<!-- /study -->\r\n\tafter  \r\n\r\n"


def test_block_is_written_and_the_rest_stays_byte_for_byte(tmp_path):
    page = tmp_path / "page.md"
    page.write_bytes(PAGE.encode())
    assert write_blocks([page], "one", "a\nb\n", runs=2) == [page]
    after = page.read_bytes().decode()
    assert after == PAGE.replace("old", "<!-- runs: 2 -->\r\na\r\nb")
    assert write_blocks([page], "one", "a\nb", runs=2) == [page]
    assert page.read_bytes().decode() == after


def test_every_block_of_the_study_is_written_and_no_other(tmp_path):
    (tmp_path / "sub").mkdir()
    mine = "x<!-- study: one --><!-- /study -->y<!-- study: one --><!-- /study -->"
    other = "<!-- study: one more -->kept<!-- /study -->"
    (tmp_path / "sub" / "a.md").write_text(mine + other)
    (tmp_path / "b.md").write_text(other)
    assert write_blocks([tmp_path], "one", "T", runs=0) == [tmp_path / "sub" / "a.md"]
    block = "<!-- study: one -->\n<!-- runs: 0 -->\nT\n<!-- /study -->"
    assert (tmp_path / "sub" / "a.md").read_text() == f"x{block}y{block}{other}"
    assert (tmp_path / "b.md").read_text() == other


def test_tables_of_more_runs_are_not_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- study: one --><!-- /study -->")
    write_blocks([page], "one", "many", runs=12)
    with pytest.raises(ConfigurationError, match=r"is about 12 runs, and here are 11; .*--runs"):
        write_blocks([page], "one", "few", runs=11)
    assert "many" in page.read_text()
    write_blocks([page], "one", "more", runs=13)
    assert "more" in page.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "no page in .* has a block of the study 'one'; put the lines <!-- study: one"),
        ("<!-- study: one -->", "has no end; put <!-- /study --> after it"),
        ("<!-- study: one --><!-- study: two --><!-- /study -->", "has no end"),
    ],
)
def test_page_without_a_whole_block_is_left_alone(tmp_path, text, message):
    good, page = tmp_path / "a.md", tmp_path / "page.md"
    page.write_text(text)
    good.write_text("<!-- study: one --><!-- /study -->")
    pages = [page] if text == "nothing" else [good, page]
    with pytest.raises(ConfigurationError, match=message):
        write_blocks(pages, "one", "text", runs=1)
    assert page.read_text() == text
    assert good.read_text() == "<!-- study: one --><!-- /study -->"


def test_missing_page_is_said(tmp_path):
    with pytest.raises(ConfigurationError, match="there is no page"):
        write_blocks([tmp_path / "none.md"], "one", "text", runs=1)
