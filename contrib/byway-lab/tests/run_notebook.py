"""Runs the code cells of sweep.ipynb from top to bottom, in a directory of their own.

    python run_notebook.py BYWAY [OUT]: needs byway_lab, pandas and matplotlib. With OUT, the notebook is
    written there with what its cells print and draw.
"""

import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402 (the backend comes first)


def run(notebook, directory):
    """Runs each code cell, and puts what it prints and draws into the notebook."""
    os.chdir(directory)
    names = {"__name__": "notebook"}
    for number, cell in enumerate((cell for cell in notebook["cells"] if cell["cell_type"] == "code"), start=1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec("".join(cell["source"]), names)
        cell["execution_count"] = number
        text = printed.getvalue().splitlines(True)
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
        for figure in map(pyplot.figure, pyplot.get_fignums()):
            image = io.BytesIO()
            figure.savefig(image, format="png", dpi=80, metadata={"Software": None})
            data = {"image/png": base64.b64encode(image.getvalue()).decode(), "text/plain": ["<Figure>"]}
            cell["outputs"].append({"output_type": "display_data", "metadata": {}, "data": data})
        pyplot.close("all")
    return names


def main(byway, out=None):
    file = Path(__file__).resolve().parent.parent / "sweep.ipynb"
    notebook = json.loads(file.read_text())
    os.environ["PATH"] = f"{Path(byway).parent}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as directory:
        names = run(notebook, directory)
    drawn = [output for cell in notebook["cells"] for output in cell.get("outputs", []) if "data" in output]
    assert len(drawn) == 1, "the notebook draws one figure"
    assert names["swept"].code == 0 and len(names["table"]) == len(names["swept"].rows)
    print(f"{len(names['table'])} rows, and a figure")
    if out:
        Path(out).write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    # The workers of this host are processes that import this file.
    main(*map(os.path.abspath, sys.argv[1:]))
