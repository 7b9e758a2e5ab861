# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Models, sessions, chats and vectors."""
import gc
import json
import threading

import pytest
import tenon
from conftest import ANSWER, MODEL


def test_model(model):
    info = model.info
    assert info["arch"] == "llama" and info["name"] == "tenon-tiny" and info["n_vocab"] == 2048
    text = "Hello, world! Grüße, 世界"
    assert model.detokenize(model.tokenize(text)) == text
    assert "Where does Mia live?" in model.chat_text("Where does Mia live?")
    assert model.context.devices[0]["name"] == "cpu" and model.context.memory > 0


def test_errors(model):
    with pytest.raises(tenon.Error, match="nonexistent") as caught:
        tenon.Model("/nonexistent.gguf", context=model.context)
    assert caught.value.name == "TN_ERR_IO" and caught.value.status == -3
    with pytest.raises(tenon.Error, match="temperature"):
        model.session(n_ctx=64).generate("Hello", temperature=-1)
    with pytest.raises(TypeError, match="tempera"):
        model.session(n_ctx=64).generate("Hello", tempera=1)
    with pytest.raises(ValueError, match="no device 'cuda:7'; there are cpu"):
        tenon.Model(MODEL, context=model.context, device="cuda:7")


def test_progress(model):
    seen = []
    tenon.Model(MODEL, context=model.context, progress=lambda done, total: seen.append((done, total))).close()
    assert seen and seen[-1][0] == seen[-1][1]
    with pytest.raises(tenon.Error) as caught:
        tenon.Model(MODEL, context=model.context, progress=lambda done, total: True)
    assert caught.value.name == "TN_ERR_CANCELLED"


def test_chat_streams(session):
    pieces = list(session.chat("Where does Mia live?", temperature=0))
    assert "".join(p.text for p in pieces) == ANSWER and len(pieces) > 5
    assert [p.stop for p in pieces] == [None] * (len(pieces) - 1) + ["end"]
    assert all(p.logprob <= 0 for p in pieces)


def test_generate(session):
    one = session.generate("Once upon a time", max_tokens=8, temperature=0, n_logprobs=2)
    first = next(one)
    assert len(first.logprobs) == 2 and first.logprobs[0][0] == first.token
    text = one.read()
    assert one.stop == "limit" and len(one.tokens) == 8 and one.stats["n_generated"] == 8
    again = session.generate("Once upon a time", max_tokens=8, temperature=0)
    assert again.read() == text and again.stats["n_reused"] > 0
    cut = session.generate("Once upon a time", max_tokens=8, temperature=0, stop=[text[5:9]])
    assert cut.read() == text[:5] and cut.stop == "string"
    seeds = [session.generate("The", max_tokens=12, seed=n).read() for n in (5, 5, 6)]
    assert seeds[0] == seeds[1] != seeds[2]


def test_without_a_seed_texts_differ(session):
    assert len({session.generate("The", max_tokens=16, temperature=2).read() for _ in range(3)}) > 1


def test_logit_bias_and_ban(session):
    plain = session.generate("Once upon a time", max_tokens=3, temperature=0)
    plain.read()
    biased = session.generate("Once upon a time", max_tokens=1, temperature=0,
                              logit_bias={plain.tokens[0]: -100.0})
    biased.read()
    assert biased.tokens[0] != plain.tokens[0]
    banned = session.generate("Once upon a time", max_tokens=3, temperature=0, ban=plain.text[:2])
    assert plain.text[:2] not in banned.read()


def test_json_schema(session):
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8},
                                               "age": {"type": "integer", "maximum": 99, "minimum": 0}},
              "required": ["name", "age"], "additionalProperties": False}
    found = json.loads(session.chat("A person:", json_schema=schema, max_tokens=100, seed=1).read())
    assert set(found) == {"name", "age"}


def test_chat_remembers(session):
    chat = tenon.Chat(session, system="You answer.")
    answer = "".join(p.text for p in chat.send("Where does Mia live?", temperature=0, max_tokens=20))
    assert [m["role"] for m in chat.messages] == ["system", "user", "assistant"]
    assert chat.messages[-1]["content"] == answer
    with pytest.raises(TypeError):
        next(chat.send("x", nonsense=1))
    assert len(chat.messages) == 3
    pieces = chat.send("And Tom?", temperature=0)
    next(pieces)
    pieces.close()
    assert len(chat.messages) == 5


def test_stop_from_another_thread(session):
    generation = session.generate("Once upon a time", ignore_end=True)
    next(generation)
    thread = threading.Thread(target=session.stop)
    thread.start()
    thread.join()
    generation.read()
    assert generation.stop == "cancelled"
    assert session.generate("Once", max_tokens=2).read() and session.tokens()


def test_a_new_generation_ends_the_last(session):
    first = session.generate("Once upon a time", max_tokens=5)
    next(first)
    second = session.generate("Once upon a time", max_tokens=5)
    assert first.closed and list(first) == []
    second.read()
    assert second.stop is not None


def test_save_and_load(model, session, tmp_path):
    session.generate("Once upon a time", max_tokens=4, temperature=0).read()
    session.save(tmp_path / "one.state")
    with model.session(n_ctx=256) as other:
        other.load(tmp_path / "one.state")
        assert other.tokens() == session.tokens() != []
        other.truncate(2)
        assert len(other.tokens()) == 2
        assert len(other.logits([1, 2, 3])) == model.info["n_vocab"]


def test_vectors(model):
    one, two = model.embed(["A house by the river.", "A blue house."])
    assert len(one) == len(two) == model.info["n_embd"]
    assert abs(sum(x * x for x in one) - 1) < 1e-4
    alone = model.embed("A blue house.")[0]
    cosines = [sum(a * b for a, b in zip(alone, other)) for other in (one, two)]
    assert cosines[1] > 0.999 > cosines[0]
    with tenon.Embedder(model, pooling="none", normalize=False) as rows:
        n = len(model.tokenize("A blue house."))
        assert len(rows.run(["A blue house."])[0]) == n * rows.width
        assert rows.run([]) == []
    with pytest.raises(tenon.Error) as caught:
        tenon.Embedder(model, pooling="rank")
    assert caught.value.name == "TN_ERR_UNSUPPORTED"


def test_ownership():
    """Whatever is closed or forgotten first, each object is destroyed once, after what was made from it."""
    context = tenon.Context(backend="cpu", n_threads=1)
    empty = context.memory
    model = tenon.Model(MODEL, context=context)
    session = model.session(n_ctx=64)
    generation = session.generate("Once", max_tokens=5)
    model.close()
    with pytest.raises(ValueError, match="this Model is closed"):
        model.info
    assert next(generation).token >= 0  # what was made from it goes on
    session.close()
    assert generation.closed and session.closed
    with pytest.raises(ValueError, match="this Session is closed"):
        session.tokens()
    session.close()
    gc.collect()
    assert context.memory == empty
    with tenon.Model(MODEL, context=context) as model:
        model.embed("Once")
    del model
    for _ in range(3):
        tenon.Model(MODEL, context=context).session(n_ctx=64).generate("Once")
    gc.collect()
    assert context.memory == empty
    context.close()
    with pytest.raises(ValueError):
        context.memory


def test_a_context_outlives_its_models():
    context = tenon.Context(backend="cpu", n_threads=1)
    model = tenon.Model(MODEL, context=context)
    context.close()
    assert model.tokenize("Hello")
    model.close()
    assert context._handle is None


def test_log_and_limit():
    lines, limit = [], 1 << 16
    with tenon.Context(backend="cpu", memory_limit=limit, log_level=3,
                       log=lambda level, text: lines.append(text)) as context:
        with pytest.raises(tenon.Error) as caught:
            tenon.Model(MODEL, context=context)
        assert caught.value.name == "TN_ERR_MEMORY" and context.memory_peak <= limit
