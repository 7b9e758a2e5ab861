# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Questions whose answer is worked out: sums, sequences, copying, and facts given in the question.

Each maker returns (question, short answer or None, full answer).
"""

import corpus_world as world
from corpus_cast import GIFTS, HIDING_PLACES, LOSABLE, invented_name
from corpus_grammar import article, cap
from corpus_questions import bare, join


def ask_sum(w):
    k = w.between(0, 5)
    if k <= 2:
        a, b = w.between(0, 20), w.between(0, 20) if w.chance(0.4) else w.between(0, 10)
        if w.chance(0.35):
            a, b = w.between(0, 99), w.between(0, 99 if w.chance(0.6) else 9)
        if w.chance(0.5):
            sign, word, result = "+", "plus", a + b
        else:
            a, b = max(a, b), min(a, b)
            sign, word, result = "-", "minus", a - b
        if w.chance(0.25) and a <= 20 and b <= 20 and 0 <= result <= 20:
            q = w.say(
                "[what is|how much is] {a} {o} {b}?",
                {"a": world.NUMBER_WORDS[a], "b": world.NUMBER_WORDS[b], "o": word},
            )
            return (
                q,
                cap(world.NUMBER_WORDS[result]) + ".",
                f"{cap(world.NUMBER_WORDS[a])} {word} {world.NUMBER_WORDS[b]} is {world.NUMBER_WORDS[result]}.",
            )
        q = w.say(
            "[what is {a} {o} {b}?|how much is {a} {o} {b}?|{a} {o} {b}|{a} {o} {b} = ?|what is {a} {v} "
                "{b}?|{a}{o}{b}]",
            {"a": str(a), "b": str(b), "o": sign, "v": word},
        )
        return q, f"{result}.", f"{a} {sign} {b} = {result}."
    if k == 3:
        a, b = w.between(1, 10), w.between(1, 10)
        return (
            w.say("[what is|how much is] {a} [times|*|x] {b}?", {"a": str(a), "b": str(b)}),
            f"{a * b}.",
            f"{a} times {b} is {a * b}.",
        )
    if k == 4:
        x, y = w.between(0, 60), w.between(0, 60)
        if x == y:
            y += 1
        big = w.chance(0.5)
        r = max(x, y) if big else min(x, y)
        word = "bigger" if big else "smaller"
        return f"which number is {word}, {x} or {y}?", f"{r}.", f"{r} is {word} than {x + y - r}."
    name, other = w.pick(world.GIRLS + world.BOYS), w.pick(world.PEOPLE)[0]
    a, b = w.between(2, 10), w.between(1, 6)
    thing = w.pick("apple nut coin plum egg cookie book stone".split())
    things = lambda n: f"{world.NUMBER_WORDS[n]} {thing}{'' if n == 1 else 's'}"
    if w.chance(0.5):
        return (
            w.say(
                "{n} has {x}. {o} gives {n} {y}. How many {t}s does {n} have now?",
                {"n": name, "o": other, "x": things(a), "y": things(b), "t": thing},
            ),
            cap(world.NUMBER_WORDS[a + b]) + ".",
            f"{name} has {things(a + b)} now, because {a} + {b} = {a + b}.",
        )
    b = min(b, a)
    return (
        w.say(
            "{n} has {x}. {n} [gives {y} to {o}|loses {y}]. How many {t}s does {n} have now?",
            {"n": name, "o": other, "x": things(a), "y": things(b), "t": thing},
        ),
        cap(world.NUMBER_WORDS[a - b]) + ".",
        (
            f"{name} has {things(a - b)} now" if a > b else f"{name} has no {thing}s now"
        ) + f", because {a} - {b} = {a - b}.",
    )


def ask_sequence(w):
    k = w.between(0, 6)
    if k == 0:
        a = 1 if w.chance(0.5) else w.between(0, 20)
        b = a + w.between(2, 10)
        words = b <= 20 and w.chance(0.3)
        items = [world.NUMBER_WORDS[i] if words else str(i) for i in range(a, b + 1)]
        back = w.chance(0.2)
        if back:
            items.reverse()
        q = w.say(
            "[count from {a} to {b}|please count from {a} to {b}|can you count from {a} to {b}]",
            {"a": items[0], "b": items[-1]},
        )
        if a == 1 and not back and w.chance(0.5):
            q = w.say("[count to {b}|can you count to {b}]", {"b": items[-1]})
        return q + ("?" if q.startswith("can") else "."), None, cap(", ".join(items)) + "."
    if k == 1:
        n = w.between(0, 60)
        after = w.chance(0.6)
        r = n + 1 if after or n == 0 else n - 1
        return (
            w.say("[what|which number] comes [{o}] {n}?", {"o": "after" if r > n else "before", "n": str(n)}),
            f"{r}.",
            f"{r} comes {'after' if r > n else 'before'} {n}.",
        )
    if k == 2:
        table, kind = (world.DAYS, "day") if w.chance(0.55) else (world.MONTHS, "month")
        i = w.between(0, len(table) - 1)
        step, word = (1, "after") if w.chance(0.6) else (-1, "before")
        r = table[(i + step) % len(table)]
        return (
            w.say(
                "[what {k} comes {o} {x}|which {k} is {o} {x}|what comes {o} {x}|what {k} is {o} {x}]?",
                {"k": kind, "o": word, "x": table[i]},
            ),
            r + ".",
            f"{r} comes {word} {table[i]}.",
        )
    if k == 3:
        i = w.between(0, 6)
        step, word = w.pick([(1, "tomorrow"), (-1, "yesterday")])
        r = world.DAYS[(i + step) % 7]
        return (
            w.say(
                "today is {x}. What day {v} {t}?",
                {"x": world.DAYS[i], "v": "is" if step > 0 else "was", "t": word},
            ),
            r + ".",
            f"{'Tomorrow is' if step > 0 else 'Yesterday was'} {r}.",
        )
    if k == 4:
        table, name, answer = w.pick(
            [
                (world.DAYS, "days of the week", "The days of the week are "),
                (world.MONTHS, "months of the year", "The months of the year are "),
                (world.SEASONS, "seasons", "The seasons are "),
            ]
        )
        return (
            w.say("[what are the {x}?|name the {x}.|list the {x}.|tell me the {x}.|say the {x}.]", {"x": name}),
            None,
            answer + join(table) + ".",
        )
    if k == 5:
        season, fact = w.pick(tuple(world.SEASON_FACTS.items()))
        if w.chance(0.5):
            return w.say("what happens in {s}?", {"s": season}), None, f"In {season}, {fact}."
        i = world.SEASONS.index(season)
        return (
            w.say("[what season|what|which season] comes after {s}?", {"s": season}),
            cap(world.SEASONS[(i + 1) % 4]) + ".",
            f"{cap(world.SEASONS[(i + 1) % 4])} comes after {season}.",
        )
    letter = w.between(0, 24)
    return (
        w.say("[what|which] letter comes after {x}?", {"x": chr(65 + letter)}),
        chr(66 + letter) + ".",
        f"{chr(66 + letter)} comes after {chr(65 + letter)}.",
    )


def ask_copy(w):
    k = w.between(0, 4)
    if k == 0:
        text = w.say(
            "[the {x} is {y}|{n} likes {a x}|I see {a y} {x}|{n} and {m} {v}|the {y} {x} is {p}]",
            {
                "x": w.pick(LOSABLE),
                "y": w.pick(world.COLOURS),
                "n": invented_name(w) if w.chance(0.4) else w.pick(world.BOYS),
                "m": w.pick(world.GIRLS),
                "v": w.pick(tuple(world.PAST.values())),
                "p": w.pick(HIDING_PLACES),
            },
        )
        text = cap(text) + "."
        return w.say("[repeat|say|repeat after me|repeat this|say after me|write]: {t}", {"t": text}), None, text
    if k == 1:
        n = w.between(2, 5)
        word = w.pick(w.pick(world.RHYMES))
        return (
            w.say("[say|write] the word {x} {n} times.", {"x": word, "n": world.NUMBER_WORDS[n]}),
            None,
            cap(" ".join([word] * n)) + ".",
        )
    if k == 2:
        name = invented_name(w) if w.chance(0.5) else w.pick(world.GIRLS + world.BOYS)
        word = w.pick(("hello", "good morning", "good night", "thank you", "goodbye"))
        return f"say {word} to {name}.", None, f"{cap(word)}, {name}!"
    if k == 3:
        name = invented_name(w) if w.chance(0.6) else w.pick(world.GIRLS + world.BOYS)
        return (
            w.say(
                "[my name is {n}. What is my name?|I am {n}. What is my name?|I am called {n}. Who am I?]",
                {"n": name},
            ),
            name + ".",
            f"Your name is {name}.",
        )
    words = w.some([x for group in world.RHYMES for x in group], w.between(3, 5))
    first = w.chance(0.5)
    return (
        w.say("what is the {o} word: {t}?", {"o": "first" if first else "last", "t": ", ".join(words)}),
        cap(words[0 if first else -1]) + ".",
        f"The {'first' if first else 'last'} word is {words[0 if first else -1]}.",
    )


def ask_reading(w):
    """A few sentences with changing places and owners, then a question about the last state."""
    def person():
        return invented_name(w) if w.chance(0.25) else w.pick(
            world.GIRLS + world.BOYS + [p[0] for p in world.PEOPLE[:6]]
        )
    a, b = person(), person()
    while b == a:
        b = person()
    things = w.some(LOSABLE, 2)
    colours = w.some(world.COLOURS, 2)
    places = w.some([p for p in HIDING_PLACES], 3)
    k = w.between(0, 5)
    st = {
        "a": a, "b": b, "x": things[0], "y": things[1], "c": colours[0], "d": colours[1], "p": places[0],
        "q": places[1], "r": places[2],
    }
    if k == 0:
        text = w.say("{a} has {a c} {x}. {b} has {a d} {y}.", st)
        who = w.chance(0.5)
        if w.chance(0.5):
            return (
                text + w.say(" What colour is the {t}?", {"t": things[0] if who else things[1]}),
                cap(colours[0 if who else 1]) + ".",
                f"The {things[0 if who else 1]} is {colours[0 if who else 1]}.",
            )
        return (
            text + w.say(" Who has the {t}?", {"t": things[0] if who else things[1]}),
            (a if who else b) + ".",
            f"{a if who else b} has the {things[0 if who else 1]}.",
        )
    if k == 1:
        text = w.say("{a} had {a c} {x}. {a} gave the {x} to {b}.", st)
        return text + w.say(" [Who has the {x} now|Who got the {x}]?", st), b + ".", f"{b} has the {things[0]} now."
    if k == 2:
        text = w.say("The {x} is {p}. The {y} is {q}.", st)
        first = w.chance(0.5)
        return (
            text + w.say(" Where is the {t}?", {"t": things[0 if first else 1]}),
            cap(places[0 if first else 1]) + ".",
            f"The {things[0 if first else 1]} is {places[0 if first else 1]}.",
        )
    if k == 3:
        text = w.say("{a} put the {x} {p}. [Then|Later] {b} put it {q}.", st)
        return (
            text + w.say(" Where is the {x} now?", st),
            cap(places[1]) + ".",
            f"The {things[0]} is {places[1]} now.",
        )
    if k == 4:
        older, younger = w.between(6, 12), w.between(2, 5)
        text = f"{a} is {world.NUMBER_WORDS[older]} years old. {b} is {world.NUMBER_WORDS[younger]} years old."
        if w.chance(0.5):
            text = f"{b} is {world.NUMBER_WORDS[younger]} years old. {a} is {world.NUMBER_WORDS[older]} years old."
        word = w.pick(("older", "younger"))
        r, o = (a, b) if word == "older" else (b, a)
        return text + f" Who is {word}?", r + ".", f"{r} is {word} than {o}."
    gift = w.pick(GIFTS)
    text = w.say("{a} went to the market. {a} bought {g}. Then {a} went home and put it {p}.", dict(st, g=gift))
    if w.chance(0.5):
        return text + w.say(" What did {a} buy?", st), cap(gift) + ".", f"{a} bought {gift}."
    return (
        text + w.say(" Where is the {t} [now|]?", {"t": bare(gift)}).replace(" ?", "?"),
        cap(places[0]) + ".",
        f"The {bare(gift)} is {places[0]}.",
    )


ROOMS = "kitchen garden school library barn bakery market forest cellar attic harbour mill park house shop tower".split()


def ask_facts(w):
    """Two or three plain facts, then a question: moving people, likes, yes and no, not and only."""
    def people(n):
        names = []
        while len(names) < n:
            name = invented_name(w) if w.chance(0.25) else w.pick(
                world.GIRLS + world.BOYS + [p[0] for p in world.PEOPLE[:12]]
            )
            if name not in names:
                names.append(name)
        return names
    a, b, c = people(3)
    k = w.between(0, 6)
    if k == 0:
        r = w.some(ROOMS, 3)
        lines = [
            w.say("{a} [is|was] in the {r}.", {"a": a, "r": r[0]}),
            w.say("{b} [is|was] in the {r}.", {"b": b, "r": r[1]}),
            w.say("[Then|Now|Later] {a} [goes|went] to the {r}.", {"a": a, "r": r[2]}),
        ]
        who, where = (a, r[2]) if w.chance(0.6) else (b, r[1])
        return (
            " ".join(lines) + w.say(" Where is {w}[ now|]?", {"w": who}),
            f"In the {where}.",
            f"{who} is in the {where}.",
        )
    if k == 1:
        things = w.some(
            "apples pears soup bread fish honey cake cheese plums nuts milk tea books dogs cats birds horses "
                "rain snow music stones flowers".split(),
            3,
        )
        who = w.between(0, 2)
        text = f"{a} likes {things[0]}. {b} likes {things[1]}. {c} likes {things[2]}."
        if w.chance(0.5):
            return (
                text + f" What does {(a, b, c)[who]} like?",
                cap(things[who]) + ".",
                f"{(a, b, c)[who]} likes {things[who]}.",
            )
        return text + f" Who likes {things[who]}?", (a, b, c)[who] + ".", f"{(a, b, c)[who]} likes {things[who]}."
    if k == 2:
        thing, colour, other = w.pick(LOSABLE), w.pick(world.COLOURS), w.pick(world.COLOURS)
        asked = colour if w.chance(0.5) else other
        yes = asked == colour
        return (
            f"{a} has {article(colour + ' ' + thing)}. Is the {thing} {asked}?",
            "Yes." if yes else "No.",
            f"Yes, the {thing} is {colour}." if yes else f"No, the {thing} is {colour}.",
        )
    if k == 3:
        place, other, thing = w.pick(HIDING_PLACES), w.pick(HIDING_PLACES), w.pick(LOSABLE)
        asked = place if w.chance(0.5) else other
        yes = asked == place
        return (
            f"The {thing} is {place}. Is the {thing} {asked}?",
            "Yes." if yes else "No.",
            f"Yes, the {thing} is {place}." if yes else f"No, the {thing} is {place}.",
        )
    if k == 4:
        first, second = w.pick(
            (("taller", "tallest"), ("older", "oldest"), ("faster", "fastest"), ("stronger", "strongest"))
        ), w.chance(0.5)
        text = (
            f"{a} is {first[0]} than {b}. {b} is {first[0]} than {c}." if second else f"{b} is {first[0]} than "
                f"{c}. {a} is {first[0]} than {b}."
        )
        return text + f" Who is the {first[1]}?", a + ".", f"{a} is the {first[1]}."
    if k == 5:
        thing, room, room2 = w.pick(LOSABLE), *w.some(ROOMS, 2)
        text = w.say(
            "{a} [took|picked up] the {t}. {a} went to the {r}. {a} [put down|dropped|left] the {t} there. Then "
                "{a} went to the {s}.",
            {"a": a, "t": thing, "r": room, "s": room2},
        )
        if w.chance(0.6):
            return text + f" Where is the {thing}?", f"In the {room}.", f"The {thing} is in the {room}."
        return text + f" Where is {a}?", f"In the {room2}.", f"{a} is in the {room2}."
    animal, animal2 = w.some(tuple(world.ANIMALS), 2)
    names = w.some(world.PET_NAMES, 2)
    text = f"{a} has {article(animal)} called {names[0]}. {b} has {article(animal2)} called {names[1]}."
    first = w.chance(0.5)
    who, pet, kind = (a, names[0], animal) if first else (b, names[1], animal2)
    q, short, full = w.pick(
        [
            (f"Who has {article(kind)}?", who, f"{who} has {article(kind)}."),
            (f"What is the name of the {kind}?", pet, f"The {kind} is called {pet}."),
            (f"What animal does {who} have?", cap(article(kind)), f"{who} has {article(kind)} called {pet}."),
            (f"What kind of animal is {pet}?", cap(article(kind)), f"{pet} is {article(kind)}."),
        ]
    )
    return text + " " + q, short + ".", full
