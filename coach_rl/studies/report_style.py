"""The look of a study's report: light or dark as the reader has it, on a phone and on paper."""

from coach_rl.studies.plots import COLOURS

DARK_COLOURS = (
    "#4da9e8", "#ff8a4c", "#2cc295", "#e79ac4", "#f0b429", "#8ad0f5", "#e8e8e8", "#d19a5b",
)  # fmt: skip
"""The colours of groups on a dark page, in the order of the light ones."""


def _colours(colours: tuple[str, ...]) -> str:
    return " ".join(f"--group{index}: {colour};" for index, colour in enumerate(colours))


STYLE = f"""
:root {{ color-scheme: light dark; --page: #fff; --text: #1b1f24; --faint: #59636e; --line: #d5dae0;
  --box: #f5f7f9; --yes: #116329; --yes-box: #dafbe1; --open: #6b4e00; --open-box: #fff4cf;
  {_colours(COLOURS)} }}
@media (prefers-color-scheme: dark) {{ :root {{ --page: #14171b; --text: #e4e8ec; --faint: #9aa4ae;
  --line: #343b43; --box: #1d2228; --yes: #7ee2a0; --yes-box: #12331f; --open: #f2cf66;
  --open-box: #3a2f0b; {_colours(DARK_COLOURS)} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 62rem; background: var(--page);
  color: var(--text); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }}
h1 {{ font-size: 1.7rem; line-height: 1.25; margin: 0.2rem 0 0.6rem; }}
h2 {{ font-size: 1.25rem; margin: 2.4rem 0 0.6rem; padding-bottom: 0.2rem;
  border-bottom: 1px solid var(--line); }}
h3 {{ font-size: 1rem; margin: 1.4rem 0 0.4rem; }}
p, ul {{ max-width: 46rem; margin: 0.5rem 0; }}
.faint, figcaption, caption, footer {{ color: var(--faint); font-size: 0.875rem; }}
.name {{ color: var(--faint); margin: 0; }}
.verdicts {{ list-style: none; padding: 0; max-width: none; }}
.verdicts li {{ border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.7rem 0.9rem;
  margin: 0.6rem 0; background: var(--box); }}
.mark {{ display: inline-block; border-radius: 1rem; padding: 0 0.7rem; margin-right: 0.4rem;
  font-size: 0.875rem; font-weight: 600; }}
.yes {{ color: var(--yes); background: var(--yes-box); }}
.open {{ color: var(--open); background: var(--open-box); }}
.wide {{ overflow-x: auto; margin: 0.8rem 0; }}
table {{ border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }}
caption {{ text-align: left; padding-bottom: 0.3rem; }}
th, td {{ padding: 0.3rem 0.7rem 0.3rem 0; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); vertical-align: top; }}
th.text, td.text {{ text-align: left; }}
td.long {{ white-space: normal; min-width: 12rem; overflow-wrap: anywhere; }}
thead th {{ color: var(--faint); font-weight: 600; vertical-align: bottom; }}
tbody th {{ font-weight: 600; }}
.pictures {{ display: grid; gap: 1.5rem 2rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }}
figure {{ margin: 1rem 0 0; max-width: 42rem; break-inside: avoid; }}
figure svg {{ width: 100%; height: auto; display: block; }}
figure svg text {{ fill: currentColor; }}
pre {{ background: var(--box); border: 1px solid var(--line); border-radius: 0.4rem;
  padding: 0.6rem 0.8rem; margin: 0.4rem 0; font: 0.8125rem/1.5 ui-monospace, monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; }}
dt {{ font-weight: 600; }} dd {{ margin: 0 0 0.5rem; max-width: 46rem; }}
footer {{ margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 0.6rem; }}
@media print {{ :root {{ --page: #fff; --text: #000; --faint: #444; --line: #bbb; --box: #fff;
  --yes: #000; --yes-box: #fff; --open: #000; --open-box: #fff; {_colours(COLOURS)} }}
  body {{ max-width: none; padding: 0; font-size: 10pt; }} .wide {{ overflow: visible; }}
  th, td {{ white-space: normal; padding-right: 0.4rem; font-size: 8pt; }}
  .mark {{ border: 1px solid #000; }} h2, h3 {{ break-after: avoid; }}
  li, tr, pre {{ break-inside: avoid; }} }}
"""
