# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Language models and tensor graphs with libtenon.

    import tenon

    with tenon.Model("model.gguf") as model, model.session() as session:
        for piece in session.chat("Where does Mia live?"):
            print(piece.text, end="", flush=True)

Objects belong to the library and are freed by `with`, by close(), or with the last reference. A failure
raises Error, which has a status. docs/python.md has examples of everything.
"""
from ._abi import VERSION as __version__
from ._library import Error, version
from .context import Context
from .engine import Engine, Event
from .graph import OPS, Graph, Plan, Runner, Value
from .model import Embedder, Model
from .options import GenerateOptions
from .session import Chat, Generation, Piece, Session

__all__ = ["Chat", "Context", "Embedder", "Engine", "Error", "Event", "GenerateOptions", "Generation",
           "Graph", "Model", "OPS", "Piece", "Plan", "Runner", "Session", "Value", "__version__", "version"]
