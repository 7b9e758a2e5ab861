# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs."""
import array

import pytest
import tenon


@pytest.fixture(scope="module")
def context():
    with tenon.Context(backend="cpu", n_threads=1) as one:
        yield one


@pytest.fixture
def plan(context):
    """y = relu(x w^T) + x w^T, best = argmax(y)"""
    with tenon.Graph(context) as graph:
        x, w = graph.input("x", (2, 3)), graph.weight("w", (4, 3))
        product = graph.matmul(x, w)
        y = graph.unary("relu", product) + product
        assert y.shape == (2, 4) and y.dtype == "F32"
        graph.output("y", y)
        graph.output("best", graph.op("argmax", y))
        return graph.compile()


W = [float(i - 4) for i in range(12)]
X = [1.0, 0.0, 0.0, 0.5, 1.0, -2.0]


def expected():
    rows = []
    for r in range(2):
        product = [sum(X[3 * r + k] * W[3 * c + k] for k in range(3)) for c in range(4)]
        rows.append([max(v, 0) + v for v in product])
    return rows


def numbers(view):
    """All elements, whatever the shape."""
    return view.cast("B").cast(view.format).tolist()


def check_results(results):
    assert results["y"].tolist() == expected()
    assert results["y"].shape == (2, 4)
    assert numbers(results["best"]) == [max(range(4), key=row.__getitem__) for row in expected()]


def test_run(plan):
    with plan.runner(w=W) as runner:
        check_results(runner.run(x=X))
        check_results(runner.run(x=array.array("f", X)))
        check_results(runner.run(x=array.array("f", X).tobytes()))
        assert runner.run(x=[0, 0, 0, 0, 0, 0])["y"].tolist() == [[0.0] * 4] * 2


def test_numpy(plan):
    numpy = pytest.importorskip("numpy")
    w = numpy.array(W, dtype=numpy.float32).reshape(4, 3)
    runner = plan.runner(w=w)
    x = numpy.array(X, dtype=numpy.float32).reshape(2, 3)
    y = numpy.asarray(runner.run(x=x)["y"])
    assert y.shape == (2, 4) and y.dtype == numpy.float32
    assert numpy.array_equal(y, numpy.maximum(x @ w.T, 0) + x @ w.T)
    with pytest.raises(TypeError, match="format 'd'"):
        runner.run(x=x.astype(numpy.float64))
    with pytest.raises(ValueError, match="contiguous"):
        runner.run(x=numpy.asfortranarray(x))


def test_errors(context, plan):
    with tenon.Graph(context) as graph:
        with pytest.raises(tenon.Error, match="matmul") as caught:
            graph.matmul(graph.input("a", (2, 3)), graph.weight("b", (4, 5)))
        assert caught.value.name == "TN_ERR_SHAPE"
    with pytest.raises(tenon.Error, match="w"):
        plan.runner()
    with pytest.raises(tenon.Error):
        plan.runner(w=W).run(x=[1.0])
    with pytest.raises(TypeError):
        plan.runner(w=array.array("d", W))
    with pytest.raises(ValueError, match="no op 'nonsense'"):
        tenon.Graph(context).op("nonsense")
    with pytest.raises(TypeError, match="no option 'kind'"):
        graph = tenon.Graph(context)
        graph.op("rms_norm", graph.input("x", (2, 3)), kind=1)


def test_values_die_with_their_graph(context):
    graph = tenon.Graph(context)
    x = graph.input("x", (2, 3))
    graph.close()
    with pytest.raises(ValueError, match="this Graph is closed"):
        x.shape
    with pytest.raises(ValueError):
        x + x


def test_ops_and_dump(context):
    with tenon.Graph(context) as graph:
        x = graph.input("x", (4, 8))
        total, normed = graph.op("add_rms_norm", x, x, eps=1e-5)
        graph.output("a", graph.softmax(graph.rms_norm(graph.reshape(total, (2, 16)))))
        graph.output("b", normed * normed)
        plan = graph.compile(device="cpu")
    assert "add_rms_norm" in plan.dump() and plan.dump("json").startswith("{")
    out = plan.runner().run(x=[1.0] * 32)
    assert numbers(out["a"]) == pytest.approx([1 / 16] * 32)
    assert numbers(out["b"]) == pytest.approx([1] * 32, abs=1e-4)


def test_state(context):
    """A cache keeps what was written to it."""
    with tenon.Graph(context) as graph:
        cache = graph.state("cache", (1, 1, 4, 8), "F32")
        x, slots = graph.input("x", (1, 1, 8)), graph.input("slots", (1,), "I32")
        graph.op("cache_write", cache, x, slots)
        graph.output("y", graph.unary("affine", x, a=2, b=1))
        plan = graph.compile()
    state = array.array("f", [0.0] * 32)
    runner = plan.runner(cache=state)
    runner.run(x=[1.0] * 8, slots=[2])
    assert runner.run(x=[2.0] * 8, slots=[0])["y"].tolist() == [[[5.0] * 8]]
