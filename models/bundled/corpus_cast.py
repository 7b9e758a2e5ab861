# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Who and what a story is about: heroes, friends, things, places, weather.

`new_state` fills the slots that every plot may use. Slots of the hero have no prefix ({A} {he} {him}
{his}), those of the friend start with b ({B} {bhe} ...), those of the helper with c.
"""

import corpus_world as world

PRONOUNS = {
    "f": ("she", "her", "her", "herself"),
    "m": ("he", "him", "his", "himself"),
    "n": ("it", "it", "its", "itself"),
}

STORY_ANIMALS = (
    "cat dog cow horse sheep goat pig hen duck goose mouse rabbit frog bee bird owl raven parrot fox wolf bear "
    "lion elephant monkey turtle hedgehog squirrel deer donkey penguin hamster snail ant butterfly camel seagull "
    "beaver badger zebra giraffe dolphin dinosaur spider kangaroo koala hippo crocodile snake rat eagle mole "
    "kitten puppy lamb duckling bunny pony crab bat tiger otter panda swan"
).split()
ADULTS = (
    "baker farmer teacher doctor miller smith tailor carpenter gardener painter cook shepherd sailor potter "
    "shoemaker postman clockmaker builder fisherman librarian singer"
).split()
FANTASY = {  # kind: (where it lives, possible pronouns)
    "dragon": ("in a cave high on a mountain", "mf"), "giant": ("in a huge house behind the hills", "mf"), "fairy": ("in a blue flower", "f"),
    "wizard": ("in a crooked tower", "m"), "witch": ("in a hut in the dark forest", "f"), "mermaid": ("at the bottom of the sea", "f"),
    "knight": ("in a small castle", "mf"), "princess": ("in a castle by the lake", "f"), "prince": ("in a castle on a rock", "m"),
    "king": ("in a great castle", "m"), "queen": ("in a white palace", "f"), "pirate": ("on an old ship", "mf"),
    "unicorn": ("in a silver forest", "mf"), "ghost": ("in an empty old house", "mf"), "elf": ("in a house under the roots of an oak", "mf"),
    "troll": ("under a stone bridge", "m"), "robot": ("in a workshop full of tools", "mfn"), "gnome": ("in a red mushroom", "m"),
    "monster": ("under a big bed", "mf"), "magician": ("in a house full of clocks", "mf"), "astronaut": ("in a little house on the moon", "mf"),
    "superhero": ("on top of a high tower", "mf"), "ninja": ("in a quiet garden behind a wall", "mf"), "detective": ("in a narrow street in the town", "mf"),
    "clown": ("in a colourful wagon", "mf"), "inventor": ("in a house full of machines", "mf"), "explorer": ("in a tent at the river", "mf"),
    "vampire": ("in an old castle", "mf"), "cowboy": ("on a dusty ranch", "m"), "dwarf": ("in a cave full of lamps", "mf"), "angel": ("on a white cloud", "mf"),
    "alien": ("on a small green star", "mfn"), "soldier": ("in a camp by the road", "mf"), "scientist": ("in a room full of bottles", "mf"), "mummy": ("in a dark pyramid", "mf"),
}
THINGS_ALIVE = {  # things that talk in stories: where they are
    "boat": "at the harbour", "train": "at the station", "star": "in the night sky", "cloud": "over the meadow", "teapot": "on a kitchen shelf",
    "lamp": "at the corner of a street", "snowman": "in front of the school", "tree": "on a hill", "clock": "in the town hall",
    "kite": "in a dusty box", "leaf": "on an old oak", "lighthouse": "on a cliff", "candle": "on a window sill", "flower": "in a garden",
    "toy bear": "in a toy shop", "raindrop": "in a grey cloud", "balloon": "at the fair", "bus": "in a big garage", "book": "in the library",
    "shoe": "under a bed", "pumpkin": "in a field", "moon": "in the sky", "stone": "at the side of a road", "bell": "in a tall tower", "spaceship": "behind the moon", "car": "in a small garage", "rocket": "on a wide field", "sock": "in a drawer", "truck": "on a building site",
    "cookie": "in a big jar", "potato": "in the cellar", "spoon": "in a kitchen drawer", "chair": "in the school", "umbrella": "behind a door", "computer": "on a desk", "hat": "on a hook",
    "bicycle": "behind the house", "mountain": "at the end of the world", "river": "in a green valley", "house": "at the end of the village", "plane": "at the airport", "doll": "on a shelf",
    "banana": "in a fruit bowl", "carrot": "in a garden", "pencil": "in a school bag", "drum": "in a music room", "rainbow": "over the hills", "wind": "between the clouds",
}
ADJECTIVES = {
    "child": "little small young cheerful curious shy brave kind clever quiet".split(),
    "animal": "little small young brown grey black pink blue clever lazy curious shy brave friendly hungry white "
        "tiny old fat".split(),
    "adult": "old kind friendly young busy poor clever tall quiet cheerful".split(),
    "fantasy": "little young old friendly lonely small shy clever gentle funny".split(),
    "thing": "little old small red blue green yellow shiny lonely proud tiny brave".split(),
}
CHILD_HOMES = (
    "in a small house near the forest|in a village by the sea|in a tall house in the town|on a farm|in a cottage "
    "by the river|in a little house on a hill|next to the old mill|in a valley between two mountains|at the end of "
    "a long lane|near a deep blue lake"
).split("|")
ANIMAL_HOMES = (
    "in a warm den|under an old oak|near a quiet pond|at the edge of the forest|in a green meadow|behind the "
    "barn|by a small stream|in a hole under a hedge|on a sunny farm|in a big garden|near the mill"
).split("|")
SPECIAL_HOMES = {
    "dolphin": "in the warm sea", "crab": "on a rock by the sea", "penguin": "on the white ice",
    "hippo": "in a slow brown river", "crocodile": "in a slow brown river", "frog": "near a quiet pond",
    "swan": "on a blue lake", "seagull": "on a cliff by the sea", "bird": "in a nest in an oak",
    "owl": "in a hollow tree", "bee": "in a golden hive", "raven": "in a nest in an oak", "eagle": "on a high rock",
    "parrot": "in a tall palm tree", "lion": "in the hot grassland", "elephant": "in the hot grassland",
    "zebra": "in the hot grassland", "giraffe": "in the hot grassland", "camel": "in the yellow desert",
    "beaver": "in a house of sticks in the river", "duck": "near a quiet pond", "monkey": "in a tall palm tree",
}
ADULT_HOMES = (
    "in a small village|in a house at the market|in a town by the sea|at the end of the street|in a stone house "
    "near the bridge|in a quiet valley|above a little shop"
).split("|")
HOBBIES = (
    "sing|dance|look at the clouds|count the stars|read books|collect shells|draw pictures|climb trees|tell "
    "stories|play by the river|pick flowers|listen to the rain|walk in the forest|build small houses of "
    "sticks|watch the birds|play hide and seek|whistle|ask questions"
).split("|")

LOSABLE = (
    "ball kite hat key book doll ring whistle drum lantern map shoe scarf bell flute cup coin basket umbrella "
    "button watch feather shell marble mitten spoon ribbon necklace brush pencil puppet boot"
).split()
OBJECT_ADJECTIVES = world.COLOURS + "old new little shiny wooden small favourite".split()
HIDING_PLACES = (
    "under the bed|behind the old well|in the tall grass|on the bridge|in the barn|under a bush|next to the "
    "pond|behind a big stone|on the roof|in a hollow tree|between the roots of an oak|under a chair|in the "
    "garden|behind the door|in the hay|on the stairs|near the mill|under a pile of leaves|in the old boat|on top "
    "of the wall"
).split("|")
FOODS = (
    "apple|pear|honey cake|slice of bread|plum|cookie|piece of cheese|berry tart|pancake|carrot|peach|bowl of "
    "soup|bun|piece of pie|bag of nuts|jar of jam|banana|bowl of cherries|warm roll"
).split("|")
GO_PLACES = (
    "the forest|the river|the market|the lake|the hill|the beach|the old castle|the meadow|the farm|the mill|the "
    "town|the mountain|the harbour|the garden|the cave|the pond|the village"
).split("|")
GIFTS = (
    "a warm scarf|a jar of honey|a wooden flute|a golden button|a little lamp|a basket of apples|a soft blanket|a "
    "book with pictures|a silver bell|a small drum|a red kite|a bag of seeds|a round mirror|a blue cup|a pair of "
    "boots"
).split("|")
WEATHER = {
    "sunny": "[the sun was shining|the sky was blue and clear|it was warm and bright|the sun stood high in the "
        "sky]",
    "windy": "[a strong wind was blowing|the wind pulled at the trees|the wind sang in the chimney]",
    "rainy": "[it was raining|rain was falling on the roofs|the rain drummed on the windows]",
    "snowy": "[snow was falling|everything was white with snow|the ground was covered with snow]",
    "foggy": "[fog lay over the fields|thick fog hid the trees]",
    "cloudy": "[grey clouds covered the sky|the sky was grey]",
}


def invented_name(w):
    name = w.pick(world.SYLLABLES_1) + w.pick(world.SYLLABLES_2)
    return name + w.pick(world.SYLLABLES_3) if w.chance(0.6) else name


def person_name(w, gender):
    if w.chance(0.15):
        return invented_name(w)
    return w.pick(world.GIRLS if gender == "f" else world.BOYS)


def _put(s, prefix, letter, cast):
    s[letter] = cast["name"]
    s[letter + "kind"] = cast["kind"]
    s[letter + "noun"] = cast["noun"]
    for slot, value in zip(("he", "him", "his", "self"), PRONOUNS[cast["gender"]]):
        s[prefix + slot] = value


def make_character(w, group, noun=None, name=None, taken=()):
    """group: child, animal, adult, fantasy or thing. `name` None lets the dice decide."""
    adjective = w.pick(ADJECTIVES[group])
    if group == "child":
        gender = {"girl": "f", "boy": "m"}.get(noun) or w.pick("fm")
        noun = "girl" if gender == "f" else "boy"
        home = w.pick(CHILD_HOMES)
    elif group == "animal":
        gender = w.pick("fm")
        noun = noun or w.pick(STORY_ANIMALS)
        home = SPECIAL_HOMES.get(noun) or w.pick(ANIMAL_HOMES)
    elif group == "adult":
        noun = noun or w.pick(ADULTS)
        gender = "m" if noun in ("postman", "fisherman") else w.pick("fm")
        home = w.pick(ADULT_HOMES)
    elif group == "fantasy":
        noun = noun or w.pick(tuple(FANTASY))
        home, genders = FANTASY[noun]
        gender = w.pick(genders)
    else:
        noun = noun or w.pick(tuple(THINGS_ALIVE))
        home, gender = THINGS_ALIVE[noun], w.pick("nmf")
    named = group in ("child", "adult") or w.chance(0.6)
    if name is None and named:
        while name is None or name in taken:
            if group in ("child", "adult"):
                name = person_name(w, gender)
            elif group == "fantasy" or w.chance(0.3):
                name = invented_name(w)
            else:
                name = w.pick(world.PET_NAMES)
    return {"group": group, "noun": noun, "kind": adjective + " " + noun, "named": name is not None,
            "name": name or "the " + noun, "gender": gender, "home": home}


def villager(w):
    """One of the people of Dovetail, with the fixed facts of the tables."""
    name, gender, what, home, job, pet_kind, pet, food, colour, friend, hobby = w.pick(world.PEOPLE)
    group = "child" if what in ("girl", "boy") else "adult"
    noun = job or what
    adjective = "old" if name == "Granny Ella" else w.pick(ADJECTIVES[group])
    return {
        "group": group, "noun": noun, "kind": adjective + " " + noun, "named": True, "name": name, "gender": gender,
        "home": home, "villager": True, "pet_kind": pet_kind, "pet": pet, "food": food, "colour": colour,
        "friend": friend, "hobby": hobby,
    }


def pick_group(w):
    x = w.random()
    return (
        "child" if x < 0.38 else "animal" if x < 0.70 else "fantasy" if x < 0.84 else "adult" if x < 0.92 else
            "thing"
    )


def new_state(w, hero=None, friend=None):
    """Slots for one story. `hero` and `friend` are characters or None."""
    if hero is None:
        hero = villager(w) if w.chance(0.08) else make_character(w, pick_group(w))
    while friend is None or friend["name"] == hero["name"] or friend["noun"] == hero["noun"] and not (
        friend["named"] and hero["named"]
    ):
        friend = make_character(
            w,
            "animal" if w.chance(0.45) else "child" if w.chance(0.7) else "fantasy",
            taken=(hero["name"],),
        )
    helper = None
    while helper is None or helper["name"] in (hero["name"], friend["name"]) or helper["noun"] in (
        hero["noun"],
        friend["noun"],
    ):
        helper = make_character(w, "animal" if w.chance(0.5) else "adult", taken=(hero["name"], friend["name"]))
    s = {"hero": hero, "friend": friend}
    _put(s, "", "A", hero)
    _put(s, "b", "B", friend)
    _put(s, "c", "C", helper)
    # A character that has no name yet is met as "a small fox", afterwards it is "the fox".
    s["Bmeet"] = w.say("{a Bkind} [named|called] {B}" if friend["named"] else "{a Bkind}", s)
    s["Cmeet"] = w.say("{a Ckind} [named|called] {C}" if helper["named"] else "{a Ckind}", s)
    s["home"] = hero["home"]
    s["hobby"] = w.pick(HOBBIES)
    s["thing"] = w.pick(LOSABLE)
    s["adj"] = w.pick(OBJECT_ADJECTIVES)
    s["obj"] = s["adj"] + " " + s["thing"]
    s["spot"], s["spot2"], s["spot3"] = w.some(HIDING_PLACES, 3)
    s["food"], s["food2"] = w.some(FOODS, 2)
    s["place"], s["place2"] = w.some(GO_PLACES, 2)
    s["gift"] = w.pick(GIFTS)
    s["weather"] = w.pick(tuple(WEATHER))
    s["sky"] = w.say(WEATHER[s["weather"]])
    s["colour"] = w.pick(world.COLOURS)
    s["day"] = w.pick(world.DAYS)
    return s
