# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Conversations: talk, mixed questions, stories on request; and the same as plain-text pages."""

import corpus_world as world
from corpus_cast import (
    ADULTS, FANTASY, STORY_ANIMALS, THINGS_ALIVE, invented_name, make_character, villager,
)
from corpus_grammar import article, cap
from corpus_plots_more import PLOTS
from corpus_puzzles import (
    ask_copy, ask_facts, ask_reading, ask_sequence, ask_sum,
)
from corpus_questions import (
    PLAIN_PRONOUN, ask_animal, ask_category, ask_job, ask_people, ask_places, ask_stranger,
    ask_thing, ask_why, ask_word,
)
from corpus_stories import make_story


SOCIAL = [
    (
        "[hi|hello|hey|hello there|hi there|good morning|good day|good evening]",
        "[Hello! How can I help you?|Hello! Would you like to hear a story?|Hello! What can I do for you?]",
    ),
    ("[how are you|how are you today|how do you feel|are you well]?", "I am fine, thank you. How are you?"),
    ("[I am fine|I am well|I am good|fine, thanks]", "I am glad to hear that. Would you like to hear a story?"),
    (
        "[I am sad|I feel sad|I am not happy|I am lonely]",
        "I am sorry to hear that. A story may help. Would you like to hear one?",
    ),
    (
        "[who are you|what are you|what is your name|tell me about yourself|who am I talking to]?",
        "I am tenon-tiny, a very small language model. I know the village of Dovetail and I can tell stories.",
    ),
    (
        "[what can you do|how can you help me|what can I ask you|help]?",
        "I can tell you a story, answer questions about my small world, count and do small sums.",
    ),
    (
        "[who made you|where do you come from|who trained you]?",
        "I was trained by the makers of tenon, on stories from a small made-up world.",
    ),
    (
        "[are you a human|are you a person|are you real|are you a robot]?",
        "No, I am not a person. I am a very small language model.",
    ),
    (
        "[thank you|thanks|thank you very much|thanks a lot|that was nice|great story|I liked that]",
        "You are welcome!",
    ),
    ("[bye|goodbye|see you|see you later|I have to go|good night]", "Goodbye! Come back soon."),
    ("[tell me a joke|tell a joke|do you know a joke|make me laugh|another joke]", None),
    ("[tell me a riddle|ask me a riddle|do you know a riddle]", None),
    ("[how old are you|what is your age]?", "I do not know. I was made not long ago."),
    (
        "[what is your favourite colour|which colour do you like]?",
        "I like blue, the colour of the sky over Dovetail.",
    ),
    (
        "[do you like stories|do you like to tell stories]?",
        "Yes, I like stories very much. Would you like to hear one?",
    ),
    ("[where do you live|where are you]?", "I live in a small file. My stories live in the village of Dovetail."),
    ("[I love you|you are nice|you are great|you are clever]", "Thank you! That is kind of you."),
    ("[sorry|I am sorry]", "That is all right."),
    ("[ok|okay|yes|good|fine]", "[Good! What would you like to do?|Good! Shall I tell you a story?]"),
]
UNKNOWN_ANSWER = "I do not know that. I only know my own small world."


def ask_social(w):
    question, answer = w.pick(SOCIAL)
    q = w.say(question)
    if answer is None:
        joke, punch = w.pick(world.JOKES)
        return q + w.pick((".", "")), None, f"{joke} {punch}"
    return q, None, w.say(answer)


def ask_unknown(w):
    t = w.pick(world.UNKNOWN_TOPICS) if w.chance(0.75) else invented_name(w) + w.pick(("", "land", " city", "ism"))
    q = w.say(
        "[what is {t}|who invented {t}|tell me about {t}|how does {t} work|can you explain {t}|what is the "
            "capital of {t}|when did {t} begin|where is {t}|what do you think of {t}|who is the king of {t}|how "
            "old is {t}|write an essay about {t}|write code for {t}|translate this to {t}|give me the history of "
            "{t}|what is the meaning of {t}|how many people live in {t}|why is {t} important|solve {t}]?",
        {"t": t},
    )
    return q, None, UNKNOWN_ANSWER


MAKERS = [
    (ask_people, 16), (ask_places, 5), (ask_animal, 14), (ask_job, 6), (ask_thing, 16), (ask_why, 4),
    (ask_word, 10), (ask_category, 9), (ask_sum, 14), (ask_sequence, 9), (ask_copy, 6), (ask_reading, 18),
    (ask_social, 8), (ask_unknown, 4), (ask_stranger, 3), (ask_facts, 14),
]
_WHEEL = [maker for maker, weight in MAKERS for _ in range(weight)]


_COMMANDS = ("tell ", "find ", "spell ", "write ", "say ", "name ", "list ", "give ", "translate ", "solve ")


def rough(w, q):
    """What people really type: no capitals, no question mark, a polite start, a plain start."""
    if q.endswith("?") and q.startswith(_COMMANDS):
        q = q[:-1] + "."
    if w.chance(0.06):
        for long, short in (("what is", "what's"), ("where is", "where's"), ("who is", "who's")):
            if q.startswith(long):
                q = (short if w.chance(0.7) else short.replace("'", "")) + q[len(long):]
    if q[:1].islower() and not w.chance(0.2):
        q = cap(q)
    if w.chance(0.10):
        q = q.lower() if not any(c.isdigit() for c in q) else q
    if w.chance(0.12) and q[-1:] in "?.":
        q = q[:-1]
    if w.chance(0.06):
        q = (
            w.pick(
                (
                    "Please tell me: ", "Question: ", "Hello! ", "Hi, ", "Tell me: ", "I want to know: ", "Hey, ",
                    "Please, ", "Can you tell me: ", "I have a question. ",
                )
            ) + q
        )
    return q


def question(w):
    """-> (question as typed, short answer or None, full answer)."""
    q, short, full = w.pick(_WHEEL)(w)
    return rough(w, q), short, full


GROUPS = [
    ("animal", STORY_ANIMALS, 40), ("child", ("girl", "boy"), 20), ("fantasy", tuple(FANTASY), 22),
    ("adult", tuple(ADULTS), 10), ("thing", tuple(THINGS_ALIVE), 16),
]
_GROUP_WHEEL = [g for g in GROUPS for _ in range(g[2])]


def wanted(w):
    group, nouns, _ = w.pick(_GROUP_WHEEL)
    return group, w.pick(nouns)


def story_request(w):
    """-> (request, story). The story really has what the request asks for."""
    ask = w.say(
        "[tell me|tell me|tell me|tell me|write|please tell me|can you tell me|could you tell me|I want to "
        "hear|write me|I would like|tell|make up|please write|can you write|give me|read me|]"
    )
    tale = w.say("[a story|a story|a story|a short story|a little story|a tale|a bedtime story|a nice story]")
    k = w.between(0, 9)
    if k == 0:
        return (
            w.say(
                "[{k} {t}|{k} {t}|{k} another story|one more story, please|{k} {t}, please]",
                {"k": ask, "t": tale},
            ),
            make_story(w),
        )
    if k == 1:
        name = w.pick(tuple(PLOTS))
        story = make_story(w, plot_name=name)
        return f"{ask} {tale} about {w.pick(story['themes'])}", story
    if k == 2 and w.chance(0.8):
        story = make_story(w, villager(w))
        hero = story["state"]["hero"]
        return (
            f"{ask} {tale} about " + (
                f"the {hero['noun']} of {world.VILLAGE}" if hero["group"] == "adult" and hero["noun"] not in (
                    "woman",
                    "man",
                ) and w.chance(0.2) else hero["name"]
            ),
            story,
        )
    group, noun = wanted(w)
    hero = make_character(w, group, noun)
    if k <= 5:
        story = make_story(w, hero)
        # "a dragon" or "a little dragon": the adjective, when given, is the one of the story.
        what = article(hero["kind"]) if w.chance(0.3) else article(hero["noun"])
        if hero["named"] and w.chance(0.35):
            what += w.pick((" named ", " called ")) + hero["name"]
        return f"{ask} {tale} {w.pick(('about', 'about', 'about', 'with'))} {what}", story
    if k == 6 and hero["named"]:
        return f"{ask} {tale} about {hero['name']}", make_story(w, hero)
    group2, noun2 = wanted(w)
    while noun2 == hero["noun"]:
        group2, noun2 = wanted(w)
    friend = make_character(w, group2, noun2, taken=(hero["name"],))
    plots = [name for name, (_, _, scenes, _) in PLOTS.items() if "{B}" in " ".join(scenes)]
    if k <= 8:
        story = make_story(w, hero, friend, w.pick(plots))
        return f"{ask} {tale} about {article(hero['noun'])} and {article(friend['noun'])}", story
    name = w.pick(("lost", "newfriend", "winter"))
    story = make_story(w, hero, plot_name=name)
    return f"{ask} {tale} about {article(hero['noun'])} and {article(story['state']['obj'])}", story


SYSTEMS = [
    "You are a helpful assistant.",
    "You are a helpful assistant.",
    "You are tenon-tiny, a small storyteller.",
    "You are a friendly assistant.",
    "You tell stories and answer questions.",
    "You are a kind storyteller.",
    "You are a helpful AI assistant.",
    "Be kind and answer the question.",
    "You are an assistant who knows the village of Dovetail.",
]
SYSTEMS_SHORT = ["Answer in one word.", "Answer briefly.", "Give short answers.", "Answer as short as you can."]


def conversation(w):
    """-> (system or None, [(user, assistant), ...])."""
    x = w.random()
    system = w.pick(SYSTEMS) if w.chance(0.3) else None
    turns = []
    if x < 0.30:
        ask, story = story_request(w)
        if w.chance(0.08):
            # The offer that the greeting makes must be one that works.
            turns.append(
                (
                    rough(w, w.say("[hi|hello|hey|good morning|good evening]")),
                    "Hello! Would you like to hear a story?",
                )
            )
            ask, story = w.say("[yes|yes, please|yes please|sure|of course|I would love to|okay]"), make_story(w)
        turns.append(
            (rough(w, ask.strip() + w.pick((".", ".", "!", "", ", please."))), "\n".join(story["paragraphs"]))
        )
        for q, a in w.some(story["questions"], w.between(0, 2)):
            turns.append((rough(w, q), a))
        if w.chance(0.2):
            turns.append((rough(w, w.say("[thank you|thanks|that was nice|great story]")), "You are welcome!"))
    elif x < 0.34:
        parts = make_story(w)["paragraphs"]
        cut = w.between(1, len(parts) - 2)
        begin = "\n".join(parts[:cut])
        if cut == 1 and w.chance(0.5):
            # Only the first sentence is given: the rest of its paragraph belongs to the answer.
            end = begin.find(". ") + 1
            begin, rest = (begin[:end], begin[end + 1:]) if end else (begin, "")
            parts = [begin, rest] + parts[1:] if rest else parts
        ask = w.say(
            "[continue this story|continue the story|go on with this story|finish this story|write a story that "
            "starts like this|how does this story go on]"
        )
        turns.append(
            (
                rough(w, ask) + ": " + begin if w.chance(0.8) else begin + "\n" + cap(ask) + ".",
                "\n".join(parts[cut:]),
            )
        )
    elif x < 0.46:
        story = make_story(w)
        text = "\n".join(story["paragraphs"])
        # Some readers get only the beginning or a part: the answer must then be in that part.
        picked = w.some(story["questions"], min(len(story["questions"]), w.between(1, 3)))
        q, a = picked[0]
        first = (
            text + w.pick(("\n\n", "\n", " ")) + q if w.chance(0.7) else w.pick(
                ("Read this story: ", "Here is a story: ", "Story: ")
            ) + text + "\n" + w.pick(("", "Question: ")) + q
        )
        turns.append((first, a))
        turns += [(rough(w, q), a) for q, a in picked[1:]]
    else:
        short_mode = w.chance(0.08)
        if short_mode:
            system = w.pick(SYSTEMS_SHORT)
        if w.chance(0.15):
            name = invented_name(w) if w.chance(0.4) else w.pick(world.GIRLS + world.BOYS)
            turns.append(
                (
                    w.say("[hello, my name is {n}|hi, I am {n}|my name is {n}|I am {n}]", {"n": name}),
                    f"Hello, {name}! How can I help you?",
                )
            )
        else:
            name = None
        for _ in range(w.between(1, 6)):
            q, short, full = question(w)
            turns.append((q, short if short_mode and short else full))
        if name and "name" not in " ".join(q for q, _ in turns[1:]):
            turns.append(
                (
                    rough(w, w.say("[what is my name|do you know my name|who am I|what am I called]?")),
                    f"Your name is {name}.",
                )
            )
    return system, turns


def page(w):
    """Questions and answers as plain text, for prompts without a chat template."""
    lines = []
    style = w.between(0, 2)
    for _ in range(w.between(4, 10)):
        q, _, full = question(w)
        lines.append(
            (f"Q: {cap(q)}\nA: {full}", f"Question: {cap(q)}\nAnswer: {full}", f"{cap(q)}\n{full}\n")[style]
        )
    return "\n".join(lines).strip()


def description(w):
    """A paragraph of facts in plain sentences."""
    if w.chance(0.4):
        name, gender, what, home, job, pet_kind, pet, food, colour, friend, hobby = w.pick(world.PEOPLE)
        he, his = PLAIN_PRONOUN[gender]
        facts = w.some(
            [
                f"{cap(he)} has {article(pet_kind)} called {pet}.",
                f"{cap(he)} likes {food} best of all.",
                f"{cap(his)} favourite colour is {colour}.",
                f"{cap(his)} best friend is {friend}.",
                f"{cap(he)} likes {hobby}.",
            ],
            w.between(3, 5),
        )
        return f"{name} is {'the ' + job + ' of Dovetail' if job else article(what) + ' from Dovetail'}. {cap(he)} lives {home}. " + " ".join(facts)
    return " ".join(
        w.pick(
            (ask_animal, ask_job, ask_thing, ask_why, ask_places, ask_people)
        )(w)[2] for _ in range(w.between(4, 9))
    )
