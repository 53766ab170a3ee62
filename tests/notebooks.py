"""What stands in for IPython where pictures are shown to nobody."""

import sys
from types import ModuleType, SimpleNamespace


def stand_in_for_ipython(monkeypatch):
    """Return the list of pictures that notebooks are given from now on."""
    pictures = []

    def display(picture, *, display_id):
        pictures.append(picture)
        return SimpleNamespace(update=pictures.append)

    module, package = ModuleType("IPython.display"), ModuleType("IPython")
    module.display, module.Image = display, lambda data, format: data
    package.version_info = (9, 0)  # which matplotlib asks for
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return pictures
