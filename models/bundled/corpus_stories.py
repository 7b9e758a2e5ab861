# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Makes one story: an opening, the scenes of a plot over one state, an ending, and its questions."""

import corpus_world as world
from corpus_cast import new_state
from corpus_grammar import tidy
from corpus_plots_more import MORALS, PLOTS  # this import fills PLOTS

OPENING_NAMED = (
    "[Once upon a time|Once upon a time|Once upon a time|Once|Long ago|Many years ago|A long time ago], there "
    "[was|lived] {a Akind} [named|called] {A}[. {He} lived {home}|. {He} lived {home}|, who lived {home}|. {His} "
    "home was {home}]. [|{A} [liked|loved] to {hobby}.|{He} [liked|loved] to {hobby}.|Everybody [liked|knew] "
    "{him}.]"
)
OPENING_PLAIN = (
    "[Once upon a time|Once upon a time|Once upon a time|Once|Long ago|Many years ago|A long time ago], there "
    "[was|lived] {a Akind}[. {A} lived {home}|. {A} lived {home}| who lived {home}]. [|{He} [liked|loved] to "
    "{hobby}.|{He} had no name, but {he} did not mind.]"
)
OPENING_WHO = (
    "[Once upon a time|Once upon a time|Long ago], there was {a Akind} [named|called] {A} who [liked|loved] to "
    "{hobby}. {He} lived {home}. [|Everybody [liked|knew] {him}.|Every day {he} woke up early.]"
)
OPENING_MORNING = (
    "[One|It was a] {weather} [morning|day][, and|. That day] {a Akind} named {A} [looked out of the window|woke "
    "up early|was out for a walk]. {A} lived {home}[| and liked to {hobby}|, and everybody knew {him}]."
)
OPENING_LATE = (
    "{A} was {a Akind}. {He} lived {home}. [|{He} [liked|loved] to {hobby} [every day|more than anything|very "
    "much].]"
)
OPENING_VILLAGER = (
    "[Once upon a time, there|There] was {a Akind} [named|called] {A}. {He} lived {home} in the village of "
    "Dovetail. [|{His} {petkind} {pet} was always with {him}.|{He} had a {petkind} called {pet}.|{His} favourite "
    "food was {vfood}.|{His} best friend was {vfriend}.|{He} liked {vhobby}.]"
)

ENDINGS = [
    "The end.", "The end.", "The end.", "And they all lived happily ever after.",
    "And that is the end of the story.", "",
]


def make_story(w, hero=None, friend=None, plot_name=None):
    """-> dict: name of the plot, paragraphs, questions [(question, answer)], state, themes."""
    s = new_state(w, hero, friend)
    name = plot_name or w.pick(tuple(PLOTS))
    themes, setup, scenes, questions = PLOTS[name]
    if setup:
        setup(w, s)
    hero = s["hero"]
    if hero.get("villager"):
        s.update(
            petkind=hero["pet_kind"], pet=hero["pet"], vfood=hero["food"], vfriend=hero["friend"],
            vhobby=hero["hobby"],
        )
        opening = OPENING_VILLAGER
    elif not hero["named"]:
        opening = OPENING_PLAIN
    else:
        x = w.random()
        opening = (
            OPENING_LATE if x < 0.12 else OPENING_WHO if x < 0.24 else OPENING_MORNING if x < 0.31 and name not in (
                "winter", "night", "grow", "storm", "make",
            ) else OPENING_NAMED
        )
    told = " ".join(scenes) if name != "day" else "{B} {C}"
    # Whoever takes part without being met on the way is introduced at the start.
    if "{B}" in told and "{Bmeet}" not in told:
        opening += (
            " [{His} [best|good] friend was {Bmeet}.|{He} had a friend, {Bmeet}.|{He} [often played with|knew] "
            "{Bmeet}.]"
        )
    if "{C}" in told and "{Cmeet}" not in told:
        opening += " [Next door|Not far away|In the same place] lived {Cmeet}."
    paragraphs = [tidy(w.say(opening, s))] + [tidy(w.say(scene, s)) for scene in scenes]
    ending = w.pick(ENDINGS)
    if ending:
        paragraphs[-1] += " " + ending
    answered = [(tidy(w.say(q, s)), tidy(w.say(a, s))) for q, a in questions if a]
    if s["adj"] in world.COLOURS and name == "lost":
        answered.append((tidy(w.say("what colour was the {thing}?", s)), tidy(w.say("the {thing} was {adj}.", s))))
    if w.chance(0.4):
        moral = MORALS[name]
        answered.append(
            (
                w.say(
                    "[What is the moral of the story|What can we learn from the story|What does the story teach "
                    "us]?"
                ),
                "We can learn that " + moral + ".",
            )
        )
    answered.append(
        (
            tidy(w.say("[who is the story about|who is the hero of the story]?", s)),
            tidy(
                w.say("the story is about {A}[|, {a Akind}|].", s)
            ) if hero["named"] else tidy(w.say("the story is about {a Akind}.", s)),
        )
    )
    if not hero.get("villager"):
        answered.append((tidy(w.say("where did {A} live?", s)), tidy(w.say("{A} lived {home}.", s))))
    return {"plot": name, "paragraphs": paragraphs, "questions": answered, "state": s, "themes": themes}
