"""Shipped experiments: each file returns a GraphManager from a function named `graph_manager`.

The function's arguments are the experiment's control panel. Files are loaded by path (`coach -p
NAME`), never imported by the engine; copy one to start your own. May import everything.
"""
