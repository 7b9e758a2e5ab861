# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Questions about the people, things and words of the world, from the tables of corpus_world.

Each maker returns (question, short answer or None, full answer).
"""

import corpus_world as world
from corpus_cast import invented_name
from corpus_grammar import article, cap

PLAIN_PRONOUN = {"f": ("she", "her"), "m": ("he", "his")}


def bare(noun):
    """"a red ball" -> "red ball"."""
    return noun.split(" ", 1)[1] if noun.startswith(("a ", "an ", "the ")) else noun


def join(words):
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def a_thing(w, word):
    return word if word in world.UNCOUNTED else article(word)


def ask_people(w):
    name, gender, what, home, job, pet_kind, pet, food, colour, friend, hobby = w.pick(world.PEOPLE)
    he, his = PLAIN_PRONOUN[gender]
    k = w.between(0, 12)
    if k <= 1:
        return (
            w.say(
                "[where does {n} live|where does {n} live|where is the home of {n}|do you know where {n} "
                    "lives|where is {n}'s house|where is {n}'s home|in which house does {n} live]?",
                {"n": name},
            ),
            cap(home) + ".",
            f"{name} lives {home}.",
        )
    if k == 2:
        pet_text = f"{name} has {article(pet_kind)} called {pet}."
        return (
            w.say(
                "[does {n} have a pet|what pet does {n} have|which animal does {n} have|what animal lives with "
                    "{n}]?",
                {"n": name},
            ),
            cap(article(pet_kind)) + ".",
            pet_text,
        )
    if k == 3:
        return (
            w.say(
                "[what is the name of the {k} of {n}|what is the {k} of {n} called|what is {n}'s {k} called|what "
                    "is the name of {n}'s pet]?",
                {"n": name, "k": pet_kind},
            ),
            pet + ".",
            f"The {pet_kind} of {name} is called {pet}.",
        )
    if k == 4:
        return (
            w.say(
                "[what does {n} like to eat|what is {n}'s favourite food|what is the favourite food of {n}|what "
                    "food does {n} like]?",
                {"n": name},
            ),
            cap(food) + ".",
            f"{name} likes {food} best of all.",
        )
    if k == 5:
        return (
            w.say(
                "[what is {n}'s favourite colour|what is the favourite colour of {n}|which colour does {n} "
                    "like|what colour does {n} like best]?",
                {"n": name},
            ),
            cap(colour) + ".",
            f"The favourite colour of {name} is {colour}.",
        )
    if k == 6:
        return (
            w.say(
                "[who is {n}'s [best |]friend|who is the [best |]friend of {n}|who is friends with {n}]?",
                {"n": name},
            ),
            friend + ".",
            f"The best friend of {name} is {friend}.",
        )
    if k == 7:
        return (
            w.say(
                "[what does {n} like to do|what does {n} like|what is the hobby of {n}|what does {n} do in {h} "
                    "free time]?",
                {"n": name, "h": his},
            ),
            cap(hobby) + ".",
            f"{name} likes {hobby}.",
        )
    if k == 8:
        who = f"the {job} of {world.VILLAGE}" if job else f"{article(what)} from {world.VILLAGE}"
        return (
            w.say("[who is {n}|tell me about {n}|what do you know about {n}|do you know {n}]?", {"n": name}),
            None,
            f"{name} is {who}. {cap(he)} lives {home} and has {article(pet_kind)} called {pet}. {cap(he)} likes "
                f"{hobby}.",
        )
    if k == 9 and job:
        return (
            w.say(
                "[what does {n} do|what is the job of {n}|what is {n}'s job|what does {n} work as]?",
                {"n": name},
            ),
            cap(job) + ".",
            f"{name} is the {job} of {world.VILLAGE}. {cap(he)} {world.JOBS[job][0]}.",
        )
    if k == 10 and job:
        return (
            w.say(
                "[who is the {j} [of|in] Dovetail|who is the {j} of the village|what is the {j} called|what is "
                    "the name of the {j}]?",
                {"j": job},
            ),
            name + ".",
            f"The {job} of {world.VILLAGE} is {name}.",
        )
    if k == 11:
        return (
            w.say(
                "[who has {k} called {p}|whose {b} is {p}|who is {p}]?",
                {"k": article(pet_kind), "b": pet_kind, "p": pet},
            ),
            f"{name}'s {pet_kind}.",
            f"{pet} is the {pet_kind} of {name}.",
        )
    return w.say("[who lives {h}]?", {"h": home}), name + ".", f"{name} lives {home}."


def ask_stranger(w):
    """A name that nobody in the village has: the honest answer is that it is unknown."""
    name = invented_name(w) if w.chance(0.4) else w.pick(world.GIRLS + world.BOYS)
    q = w.say(
        "[where does {n} live|who is {n}|what does {n} like|what is the favourite colour of {n}|what is {n}'s "
            "job|does {n} have a pet|what is {n}'s favourite food|who is {n}'s best friend]?",
        {"n": name},
    )
    return q, "I do not know.", f"I do not know {name}. I only know the people of {world.VILLAGE}."


def ask_places(w):
    if w.chance(0.25):
        q, a = w.pick(
            [
                (
                    "[what is the name of the village|what is your village called|where do these people live]?",
                    "The village is called Dovetail.",
                ),
                (
                    "[where is Dovetail|where does Dovetail lie]?",
                    "Dovetail lies between Mortise Hill and the Silver River.",
                ),
                (
                    "[what is Dovetail|tell me about Dovetail]?",
                    "Dovetail is a small village between Mortise Hill and the Silver River. It has a market, a "
                        "mill, a school and a harbour.",
                ),
                ("what is the [name of the river|river called]?", "The river is called the Silver River."),
                ("what is the [name of the hill|hill called]?", "The hill is called Mortise Hill."),
                (
                    "[who lives in Dovetail|who lives in the village]?",
                    "Mia, Tom, Lily, Sam, Zoe and Finn live in Dovetail, and also Anna the baker and Ben the "
                        "farmer.",
                ),
            ]
        )
        return w.say(q), None, a
    place, where, what = w.pick(world.PLACE_FACTS)
    if w.chance(0.5):
        return f"where is {place}?", cap(where) + ".", f"{cap(place)} is {where}."
    return (
        w.say(
            "what [can you find|can I find|is there] {at}?",
            {"at": "on Mortise Hill" if place == "Mortise Hill" else "at " + place},
        ),
        cap(what) + ".",
        f"{'On' if place == 'Mortise Hill' else 'At'} {place} there "
            f"{'is' if place in ('the well', 'Mortise Hill', 'the old bridge', 'the lake', 'the bakery') else 'are'} {what}.",
    )


def ask_animal(w):
    name, (sound, home, young, food, legs, moves, extra) = w.pick(tuple(world.ANIMALS.items()))
    a = article(name)
    k = w.between(0, 8)
    if k <= 1:
        q = w.say(
            "[what sound does {a n} make|what does {a n} say|what noise does {a n} make|how does {a n} sound]?",
            {"n": name},
        )
        return (
            q,
            "No sound.",
            f"{cap(a)} makes no sound that we can hear.",
        ) if sound.startswith("nothing") else (q, cap(sound) + ".", f"{cap(a)} says \"{sound}\".")
    if k == 2:
        return (
            w.say("[where does {a n} live|where do you find {a n}|what is the home of {a n}]?", {"n": name}),
            cap(home) + ".",
            f"{cap(a)} lives in {home}." if not home.startswith(
                ("the ice", "a cliff", "a meadow")
            ) else f"{cap(a)} lives on {home}.",
        )
    if k == 3:
        return (
            w.say(
                "[what is a baby {n} called|what do you call a young {n}|what is the name for a young {n}|what is "
                    "the young of {a n} called]?",
                {"n": name},
            ),
            cap(article(young)) + ".",
            f"A young {name} is called {article(young)}.",
        )
    if k == 4:
        return (
            w.say("[what does {a n} eat|what does {a n} like to eat|what is the food of {a n}]?", {"n": name}),
            cap(food) + ".",
            f"{cap(a)} eats {food}.",
        )
    if k == 5:
        legs_word = world.NUMBER_WORDS[legs]
        return (
            w.say("how many legs does {a n} have?", {"n": name}),
            cap(legs_word) + ".",
            f"{cap(a)} has no legs." if legs == 0 else f"{cap(a)} has {legs_word} legs.",
        )
    if k == 6:
        skill = w.pick(("fly", "swim"))
        other = "swim" if skill == "fly" else "fly"
        swims = moves == "swim" or name in ("frog", "turtle", "dog", "bear", "horse", "elephant", "whale")
        can = moves == "fly" or name in ("duck", "goose") if skill == "fly" else swims
        tail = f" {cap(a)} can {moves}." if moves not in (other, skill) or not can else ""
        if not can and moves == other:
            tail = f" {cap(a)} can {other}."
        return (
            f"can {a} {skill}?",
            "Yes." if can else "No.",
            (f"Yes, {a} can {skill}." if can else f"No, {a} cannot {skill}." + tail),
        )
    if k == 7:
        return (
            w.say("[what is {a n}|tell me something about {a n}|what do you know about {a n}]?", {"n": name}),
            None,
            f"{cap(a)} is an animal. {extra}" if name not in world.CATEGORIES[
                "birds"
            ][1] else f"{cap(a)} is a bird. {extra}",
        )
    i, j = w.some(range(len(world.BY_SIZE)), 2)
    x, y = world.BY_SIZE[i], world.BY_SIZE[j]
    bigger = w.chance(0.5)
    winner, loser = (x, y) if (i > j) == bigger else (y, x)
    word = "bigger" if bigger else "smaller"
    if w.chance(0.6):
        return (
            f"which is {word}, {article(x)} or {article(y)}?",
            cap(article(winner)) + ".",
            f"{cap(article(winner))} is {word} than {article(loser)}.",
        )
    yes = winner == x
    return (
        f"is {article(x)} {word} than {article(y)}?",
        "Yes." if yes else "No.",
        f"{'Yes' if yes else 'No'}, {article(winner)} is {word} than {article(loser)}.",
    )


def ask_job(w):
    job, (does, where, uses) = w.pick(tuple(world.JOBS.items()))
    a = article(job)
    k = w.between(0, 3)
    if k == 0:
        q = w.say("[what does {a j} do|what does {a j} make|what is the work of {a j}|what is {a j}]?", {"j": job})
        return q, cap(does) + ".", f"{cap(a)} {does}."
    if k == 1:
        return w.say("where does {a j} work?", {"j": job}), cap(where) + ".", f"{cap(a)} works {where}."
    if k == 2:
        return (
            w.say("[what does {a j} need|what does {a j} use|what does {a j} work with]?", {"j": job}),
            cap(uses) + ".",
            f"{cap(a)} works with {uses}.",
        )
    return w.say("who {d}?", {"d": does}), cap(a) + ".", f"{cap(a)} {does}."


def ask_thing(w):
    k = w.between(0, 8)
    if k <= 1:
        thing, colour = w.pick(tuple(world.COLOUR_OF.items()))
        if w.chance(0.2):
            asked = w.pick(("red", "blue", "green", "yellow", "white", "black"))
            return (
                f"is {thing} {asked}?",
                "Yes." if asked == colour else "No.",
                f"Yes, {thing} is {colour}." if asked == colour else f"No, {thing} is {colour}.",
            )
        return (
            w.say(
                "[what colour is {t}|what color is {t}|which colour does {t} have|what is the colour of {t}]?",
                {"t": thing},
            ),
            cap(colour) + ".",
            f"{cap(thing)} is {colour}.",
        )
    if k == 2:
        thing, use = w.pick(tuple(world.USES.items()))
        return (
            w.say(
                "[what is {t} for|what do we do with {t}|what do you need {t} for|what can you do with {t}|why do "
                    "we need {t}]?",
                {"t": thing},
            ).replace("is scissors", "are scissors").replace("is glasses", "are glasses"),
            cap(use) + ".",
            f"We need {thing} {use}.",
        )
    if k == 3:
        thing, use = w.pick(tuple(world.USES.items()))
        return f"what do we need {use}?", cap(thing) + ".", f"We need {thing} {use}."
    if k == 4:
        thing, of = w.pick(tuple(world.MADE_OF.items()))
        return (
            w.say("[what is {t} made of|what do we make {t} of]?", {"t": thing}),
            cap(of) + ".",
            f"{cap(thing)} is made of {of}.",
        )
    if k == 5:
        act, part = w.pick(world.BODY)
        return (
            w.say(
                "[what do we {a} with|with what do we {a}|which part of the body do we need to {a}]?",
                {"a": act},
            ),
            "Our " + part + ".",
            f"We {act} with our {part}.",
        )
    if k == 6:
        what, owner, n = w.pick(world.COUNTS)
        number = world.NUMBER_WORDS[n] if n <= 20 else str(n)
        if owner in ("a week", "a year", "a day", "an hour", "one hand", "two hands", "one foot"):
            verb = "have" if owner == "two hands" else "has"
            return (
                w.say(
                    "how many {w} [does {o} have|are in {o}]?" if owner not in (
                        "one hand",
                        "two hands",
                        "one foot",
                    ) else "how many {w} are on {o}?",
                    {"w": what, "o": owner},
                ),
                cap(number) + ".",
                f"{cap(owner)} {verb} {number} {what}.",
            )
        return (
            f"how many {what} does {owner} have?",
            cap(number) + ".",
            f"{cap(owner)} has {number} {what if n > 1 else what[:-1]}.",
        )
    if k == 7:
        shape, n = w.pick(tuple(world.SHAPES.items()))
        return (
            w.say("how many [sides|corners] does a {s} have?", {"s": shape}),
            cap(world.NUMBER_WORDS[n]) + ".",
            f"A {shape} has {world.NUMBER_WORDS[n]} sides and {world.NUMBER_WORDS[n]} corners.",
        )
    thing, text = w.pick(tuple(world.WHAT_IS.items()))
    return (
        w.say("[what is {t}|what is {t}|can you explain what {t} is|tell me what {t} is]?", {"t": thing}),
        None,
        text,
    )


def ask_why(w):
    question, answer = w.pick(world.WHY)
    return f"why {question}?", None, answer + "."


def ask_word(w):
    k = w.between(0, 8)
    if k <= 2:
        x, y = w.pick(world.OPPOSITES)
        if w.chance(0.5) and y not in ("light",) and x not in ("light",):
            x, y = y, x
        return (
            w.say(
                "[what is the opposite of {x}|what is the opposite of \"{x}\"|opposite of {x}|tell me the "
                    "opposite of {x}|which word is the opposite of {x}]?",
                {"x": x},
            ),
            cap(y) + ".",
            f"The opposite of {x} is {y}.",
        )
    if k == 3:
        group = w.pick(world.RHYMES)
        x, y = w.some(group, 2)
        return (
            w.say(
                "[what rhymes with {x}|which word rhymes with {x}|find a rhyme for {x}|tell me a word that rhymes "
                    "with {x}]?",
                {"x": x},
            ),
            None,
            f"{cap(y)} rhymes with {x}.",
        )
    if k == 4:
        one, many = w.pick(tuple(world.PLURALS.items()))
        return (
            w.say("[what is the plural of {x}|one {x}, two what|one {x}, many what]?", {"x": one}),
            cap(many) + ".",
            f"One {one}, two {many}.",
        )
    if k == 5:
        now, past = w.pick(tuple(world.PAST.items()))
        return (
            w.say("[what is the past of {x}|what is the past tense of {x}]?", {"x": now}),
            cap(past) + ".",
            f"The past of {now} is {past}.",
        )
    word = w.pick(
        w.pick(world.RHYMES) if w.chance(0.4) else tuple(world.PLURALS) if w.chance(0.5) else w.pick(
            tuple(world.CATEGORIES.values())
        )[1]
    )
    if k == 6:
        return (
            w.say(
                "[what is the first letter of {x}|which letter does {x} start with|what letter does {x} begin "
                    "with]?",
                {"x": word},
            ),
            word[0].upper() + ".",
            f"The first letter of {word} is {word[0].upper()}.",
        )
    if k == 7:
        return (
            w.say("[how do you spell {x}|spell {x}|spell the word {x}|can you spell {x}]?", {"x": word}),
            None,
            "-".join(word.upper()) + ".",
        )
    return (
        w.say(
            "[use the word {x} in a sentence|make a sentence with the word {x}|write a sentence with {x}]",
            {"x": word},
        ) + ".",
        None,
        w.say(
            "[I dreamed of {a x} last night.|There is {a x} in the story.|{N} has {a x}.|{N} can see {a x}.]",
            {"x": word, "n": w.pick(world.PEOPLE)[0]},
        ),
    )


def ask_category(w):
    plural, (one, members) = w.pick(tuple(world.CATEGORIES.items()))
    k = w.between(0, 3)
    if k <= 1:
        n = w.between(1, min(5, len(members)))
        chosen = w.some(members, n)
        if n == 1:
            return (
                w.say("[name|tell me|say] {a o}.", {"o": one}),
                None,
                cap(a_thing(w, chosen[0]) if plural not in ("colours", "seasons") else chosen[0]) + ".",
            )
        return (
            w.say(
                "[name|list|tell me|give me|can you name] {n} {p}.",
                {"n": world.NUMBER_WORDS[n] if w.chance(0.7) else str(n), "p": plural},
            ),
            None,
            cap(join(chosen)) + ".",
        )
    other_plural = w.other(tuple(world.CATEGORIES), plural)
    if k == 2:
        word = w.pick(members)
        yes = w.chance(0.5)
        asked = one if yes else world.CATEGORIES[other_plural][0]
        if not yes and word in world.CATEGORIES[other_plural][1] or {asked, one} in (
            {"animal", "bird"}, {"animal", "insect"}, {"fruit", "colour"}, {"flower", "colour"},
            {"fruit", "vegetable"},
        ):
            asked, yes = one, True
        if plural in ("colours", "seasons"):
            return (
                f"is {word} {article(asked)}?",
                "Yes." if yes else "No.",
                f"Yes, {word} is {article(asked)}." if yes else f"No, {word} is not {article(asked)}. It is "
                    f"{article(one)}.",
            )
        thing = a_thing(w, word)
        return (
            f"is {thing} {article(asked)}?",
            "Yes." if yes else "No.",
            f"Yes, {thing} is {article(asked)}." if yes else f"No, {thing} is not {article(asked)}. It is "
                f"{article(one)}.",
        )
    if plural in (
        "colours", "seasons", "birds", "animals", "insects", "drinks",
    ) and other_plural in ("birds", "animals", "insects", "colours", "drinks", "fruits"):
        plural, (one, members), other_plural = "tools", world.CATEGORIES["tools"], "animals"
    odd = w.other(world.CATEGORIES[other_plural][1], *members)
    three = w.some(members, 2) + [odd]
    order = w.some(three, 3)
    return (
        w.say(
            "[which one is not {a o}|which word does not fit|which is the odd one out]: {x}, {y} or {z}?",
            {"o": one, "x": order[0], "y": order[1], "z": order[2]},
        ),
        cap(odd) + ".",
        f"{cap(odd)} does not fit. The others are {plural}.",
    )
