"""What a scientist does on the page, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from blastyard.bootstrap.yard import Yard

EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def ask(page: Page, query: str, title: str = "") -> None:
    page.get_by_label("Query, in FASTA").fill(query)
    page.get_by_label("Title").fill(title)
    page.get_by_role("button", name="Search").click()


def test_a_pasted_sequence_ends_as_a_table_of_hits_and_a_download(
    page: Page, gene: str, tmp_path: Path
) -> None:
    ask(page, gene, "my gene")

    expect(page.get_by_role("heading", name="my gene")).to_be_visible()
    table = page.get_by_role("table")
    expect(table.get_by_role("columnheader")).to_have_text(
        [
            "Subject",
            "E-value",
            "Bit score",
            "Identity",
            "Length",
            "Query range",
            "Subject range",
            "Title",
        ]
    )
    expect(table.get_by_role("cell", name="fam1_0", exact=True)).to_be_visible()
    with page.expect_download() as started:
        page.get_by_role("link", name="Download").click()
    saved = tmp_path / "saved"
    started.value.save_as(saved)
    assert started.value.suggested_filename.endswith(".tsv")
    assert saved.read_text().endswith("# BLAST processed 1 queries\n")


def test_a_file_is_searched_and_its_repairs_are_told(page: Page, gene: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.fa"
    path.write_bytes(gene.replace("\n", "\r\n").encode())
    page.get_by_label("or a file").set_input_files(path)
    page.get_by_role("button", name="Search").click()

    expect(page.get_by_role("heading", name="About the query")).to_be_visible()
    expect(page.get_by_text("mine.fa, line 1")).to_be_visible()


def test_a_query_without_hits_says_so_beside_one_with_hits(page: Page, gene: str) -> None:
    ask(page, gene + ">lonely\n" + "ACGTTTGCATCA" * 5 + "\n")

    expect(page.get_by_role("heading", name="lonely")).to_be_visible()
    expect(page.get_by_text("No hits.")).to_be_visible()
    expect(page.get_by_role("table")).to_have_count(1)


def test_a_mistake_in_the_query_is_shown_where_it_is(page: Page) -> None:
    query = ">a\nACGTACGTACGTACGTACGTACGTACGT\nACGTAC-GT\n"

    ask(page, query, "kept")

    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("line 3, column 7")
    expect(alert).to_contain_text("What to do:")
    expect(alert.locator("mark")).to_have_text("-")
    expect(alert).to_be_focused()
    expect(page.get_by_label("Query, in FASTA")).to_have_value(query)
    expect(page.get_by_label("Title")).to_have_value("kept")


def test_a_query_pasted_beside_a_chosen_file_is_asked_about_and_kept(
    page: Page, gene: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.fa"
    path.write_text(gene)
    page.get_by_label("or a file").set_input_files(path)

    ask(page, gene)

    expect(page.get_by_role("alert")).to_contain_text("more than one query")
    expect(page.get_by_label("Query, in FASTA")).to_have_value(gene)


def test_titles_of_queries_and_searches_stay_text(page: Page, gene: str) -> None:
    sequence = gene.partition("\n")[2]

    ask(page, f">q {EVIL}\n{sequence}", EVIL)

    expect(page.get_by_role("table")).to_be_visible()
    expect(page.locator("h1")).to_have_text(EVIL)
    expect(page.locator("h3")).to_have_text(f"q {EVIL}")
    assert page.locator("main img, main script").count() == 0
    page.goto("/")
    expect(page.get_by_role("link", name=EVIL)).to_be_visible()
    assert "owned" not in page.title()


def test_a_mistake_that_quotes_the_query_stays_text(page: Page) -> None:
    ask(page, f"{EVIL}\nACGT\n", '"><b>title</b>')

    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Title")).to_have_value('"><b>title</b>')
    assert page.locator("main img, main script, main b").count() == 0


def test_the_place_in_the_queue_is_followed_and_a_search_cancelled(
    page: Page, operator: Yard, gene: str
) -> None:
    operator.gate.change_policy("operator", ceiling=0)
    ask(page, gene, "first")
    expect(page.locator("#status")).to_contain_text("Place 1 in the queue: the ceiling is 0")
    first = page.url
    page.goto("/")
    ask(page, gene, "second")
    expect(page.locator("#status")).to_contain_text("Place 2 in the queue")

    operator.searches.cancel(first.rpartition("/")[2])
    expect(page.locator("#status")).to_contain_text("Place 1 in the queue")
    page.get_by_role("button", name="Cancel").click()

    expect(page.locator("#state")).to_have_text("cancelled")
    expect(page.get_by_role("button", name="Run again")).to_be_visible()


def test_a_waiting_page_turns_into_the_result_by_itself(
    page: Page, operator: Yard, gene: str
) -> None:
    operator.gate.change_policy("operator", ceiling=0)
    ask(page, gene)
    expect(page.locator("#state")).to_have_text("waiting")

    operator.gate.change_policy("operator", ceiling=1)

    expect(page.get_by_role("table")).to_be_visible()


def test_only_programs_that_suit_the_database_are_offered(page: Page) -> None:
    program = page.get_by_label("Program")
    assert program.input_value() == "blastn"

    page.get_by_label("Database").select_option("proteins")

    assert program.input_value() in ("blastp", "blastx")
    offered = program.locator("option:not([disabled])").all_inner_texts()
    assert [text.split()[0] for text in offered] == ["blastp", "blastx"]


def test_the_page_works_without_a_script(open_page: Callable[..., Page], gene: str) -> None:
    page = open_page(java_script_enabled=False)

    ask(page, gene, "plain")

    expect(page.get_by_role("table")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_runs_out_of_a_phone_and_contrast_is_kept(
    open_page: Callable[..., Page], scheme: str, gene: str
) -> None:
    page = open_page(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    pages = ["/", "/docs"]
    ask(page, gene, "a_title_that_is_one_long_word_" * 8)
    expect(page.get_by_role("table")).to_be_visible()
    pages.append(page.url)

    for url in pages:
        page.goto(url)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, url
        assert page.evaluate(CONTRAST) >= 4.5, url


# The least contrast of text against the first opaque ground behind it (WCAG 2.2, 1.4.3).
CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92
      : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = parse(getComputedStyle(each).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  let least = 21;
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!text || element.tagName === "NOSCRIPT") continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return least;
}"""
