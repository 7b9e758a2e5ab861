# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The small world of the bundled model: its people, things and facts, as tables.

Stories and questions both read these tables, so that a story never contradicts an answer. Names are
split in two sets: the people of the village of Dovetail have fixed homes and jobs, everybody else
is new in each story.
"""

VILLAGE = "Dovetail"

# name, pronoun set, what they are, home, job or None, pet kind, pet name, food, colour, friend, hobby
PEOPLE = [
    ("Mia", "f", "girl", "in the blue house by the river", None, "cat", "Pip", "honey cake", "yellow", "Tom", "painting"),
    ("Tom", "m", "boy", "in the red house on Mortise Hill", None, "dog", "Rex", "apple pie", "green", "Mia", "flying kites"),
    ("Lily", "f", "girl", "in the white house next to the school", None, "rabbit", "Snow", "plum jam", "pink", "Sam", "singing"),
    ("Sam", "m", "boy", "in the boat house at the lake", None, "duck", "Waddle", "fish soup", "blue", "Lily", "swimming"),
    ("Zoe", "f", "girl", "in the old mill", None, "mouse", "Crumb", "cheese", "purple", "Finn", "reading"),
    ("Finn", "m", "boy", "in the tree house in the forest", None, "owl", "Hoot", "nuts", "brown", "Zoe", "climbing trees"),
    ("Anna", "f", "woman", "above the bakery", "baker", "goose", "Flour", "warm bread", "orange", "Ben", "dancing"),
    ("Ben", "m", "man", "on the farm", "farmer", "horse", "Clover", "corn", "gold", "Anna", "whistling"),
    ("Rosa", "f", "woman", "in the brick house behind the school", "teacher", "parrot", "Echo", "pancakes", "red", "Ivy", "writing letters"),
    ("Otto", "m", "man", "in the windmill on the meadow", "miller", "donkey", "Barley", "porridge", "white", "Hugo", "playing chess"),
    ("Nora", "f", "woman", "in the green house at the market", "doctor", "turtle", "Slowly", "carrot soup", "silver", "Rosa", "gardening"),
    ("Hugo", "m", "man", "in the stone house by the bridge", "smith", "goat", "Anvil", "sausages", "black", "Otto", "fishing"),
    ("Ivy", "f", "woman", "in the little room above the library", "librarian", "hamster", "Comma", "raisins", "violet", "Nora", "telling stories"),
    ("Max", "m", "man", "in the yellow hut at the harbour", "fisherman", "seagull", "Salty", "fried fish", "navy blue", "Bram", "sailing"),
    ("Bram", "m", "man", "in the small tower on the bridge", "bridge keeper", "raven", "Ink", "pea soup", "grey", "Max", "carving wood"),
    ("Granny Ella", "f", "woman", "in the cottage at the edge of the forest", None, "hedgehog", "Needle", "berry tart", "lilac", "Ivy", "knitting"),
]

PLACE_FACTS = [  # place, where it is, what one finds there
    ("the bakery", "on the market square", "bread, rolls and cakes"),
    ("the library", "next to the town hall", "books and quiet corners"),
    ("the school", "at the end of Chalk Lane", "desks, books and children"),
    ("the market", "in the middle of the village", "fruit, cloth and cheese"),
    ("the windmill", "on the meadow", "flour and old millstones"),
    ("the harbour", "where the Silver River meets the lake", "boats, nets and seagulls"),
    ("the old bridge", "over the Silver River", "a small tower with a bell"),
    ("the forest", "north of the village", "tall trees, mushrooms and deer"),
    ("the farm", "south of the village", "cows, hens and fields of corn"),
    ("Mortise Hill", "east of the village", "soft grass and a lot of wind"),
    ("the lake", "west of the village", "fish, reeds and cold clear water"),
    ("the well", "behind the town hall", "fresh water"),
]

GIRLS = ("Ada Amy Bella Cora Daisy Edith Elsa Emma Eva Fay Flora Freya Gina Grace Greta Hana Hazel Ida Ines Iris Jane June Kate Kira "
         "Lara Lena Lola Lucy Luna Maya Mina Molly Nadia Nell Nina Olga Olive Pearl Petra Poppy Ruby Ruth Sara Sofia Stella Tara Tessa Tilda "
         "Una Vera Wanda Willa Yara Zelda").split()
BOYS = ("Abel Adam Albert Alex Arlo Axel Basil Bruno Caleb Carl Dan David Eli Emil Eric Felix Frank Fred Gus Hank Harry Henry Ian Igor "
        "Ivan Jack Jacob James Jim Joel John Jonas Karl Kurt Lars Leo Liam Luke Marco Mark Milo Ned Nico Noah Omar Oscar Owen Paul Peter "
        "Phil Ralph Remy Rob Simon Ted Theo Tim Toby Victor Walter Will").split()
PET_NAMES = ("Acorn Bean Biscuit Bramble Bubbles Button Buttons Chip Cookie Cricket Dash Dot Ember Fern Fig Fluffy Ginger Hazelnut Jumper "
             "Kiki Lucky Maple Mimi Misty Moss Muffin Nibbles Nutmeg Olly Patches Peanut Pebble Pepper Pickle Pippa Plum Poco Puddle Quill "
             "Rusty Scout Shadow Smudge Sparky Spot Sunny Tiny Toffee Twig Velvet Whiskers Ziggy").split()
# Sound parts of invented names: they make the model copy names instead of knowing them all.
SYLLABLES_1 = "Ba Be Bo Da Do Fe Ga Ha Jo Ka Ke Ko La Lo Ma Mo Na Ne No Pa Po Ra Ri Ro Sa So Ta To Va Vo Wi Ya Yo Za Zi Zu".split()
SYLLABLES_2 = "ba bi da do fi ga ka ki la li lo ma mi mo na ni no ra ri ro sa ta ti to va za".split()
SYLLABLES_3 = "n r l s x rin lan mo bo ko ta ra na la li na no".split()

# kind: sound, home, young, food, legs, how it moves, one more fact
ANIMALS = {
    "cat": ("meow", "a house", "kitten", "fish", 4, "walk", "A cat likes to sleep in the sun."),
    "dog": ("woof", "a dog house", "puppy", "meat and bones", 4, "run", "A dog is a good friend."),
    "cow": ("moo", "a barn", "calf", "grass", 4, "walk", "A cow gives milk."),
    "horse": ("neigh", "a stable", "foal", "hay", 4, "run", "A horse can pull a cart."),
    "sheep": ("baa", "a meadow", "lamb", "grass", 4, "walk", "A sheep gives wool."),
    "goat": ("meh", "a barn", "kid", "leaves and grass", 4, "climb", "A goat can climb steep rocks."),
    "pig": ("oink", "a sty", "piglet", "corn", 4, "walk", "A pig likes to roll in mud."),
    "hen": ("cluck", "a coop", "chick", "grain", 2, "walk", "A hen lays eggs."),
    "duck": ("quack", "a pond", "duckling", "water plants", 2, "swim", "A duck has feet like paddles."),
    "goose": ("honk", "a pond", "gosling", "grass", 2, "swim", "A goose can guard a house."),
    "mouse": ("squeak", "a hole in the wall", "pup", "cheese and seeds", 4, "run", "A mouse is very small."),
    "rabbit": ("sniff", "a burrow", "kit", "carrots and grass", 4, "hop", "A rabbit has long ears."),
    "frog": ("croak", "a pond", "tadpole", "flies", 4, "jump", "A frog has smooth green skin."),
    "bee": ("buzz", "a hive", "larva", "nectar", 6, "fly", "A bee makes honey."),
    "bird": ("tweet", "a nest", "chick", "seeds and worms", 2, "fly", "A bird has feathers."),
    "owl": ("hoot", "a hollow tree", "owlet", "mice", 2, "fly", "An owl is awake at night."),
    "raven": ("caw", "a nest", "chick", "seeds and bugs", 2, "fly", "A raven is black and clever."),
    "parrot": ("squawk", "a tree", "chick", "nuts and fruit", 2, "fly", "A parrot can learn words."),
    "fox": ("yip", "a den", "cub", "mice and berries", 4, "run", "A fox has a bushy red tail."),
    "wolf": ("howl", "a den", "pup", "meat", 4, "run", "A wolf lives in a pack."),
    "bear": ("growl", "a cave", "cub", "berries and honey", 4, "walk", "A bear sleeps through the winter."),
    "lion": ("roar", "the grassland", "cub", "meat", 4, "run", "A lion has a big mane."),
    "elephant": ("trumpet", "the grassland", "calf", "leaves and grass", 4, "walk", "An elephant has a long trunk."),
    "monkey": ("chatter", "a tree", "infant", "bananas", 2, "climb", "A monkey can hang by its tail."),
    "snake": ("hiss", "a hole", "snakelet", "mice", 0, "crawl", "A snake has no legs."),
    "fish": ("blub", "the water", "fry", "small water bugs", 0, "swim", "A fish breathes under water."),
    "whale": ("sing", "the sea", "calf", "small sea animals", 0, "swim", "A whale is the biggest animal of all."),
    "turtle": ("snap", "a pond", "hatchling", "leaves", 4, "crawl", "A turtle carries a hard shell."),
    "hedgehog": ("snuffle", "a pile of leaves", "hoglet", "bugs", 4, "walk", "A hedgehog has sharp spines."),
    "squirrel": ("chirp", "a hollow tree", "kit", "nuts", 4, "climb", "A squirrel hides nuts for the winter."),
    "deer": ("bleat", "the forest", "fawn", "leaves and grass", 4, "run", "A deer can run very fast."),
    "donkey": ("hee-haw", "a stable", "foal", "hay", 4, "walk", "A donkey can carry heavy bags."),
    "spider": ("nothing at all", "a web", "spiderling", "flies", 8, "crawl", "A spider spins a web."),
    "ant": ("nothing at all", "an ant hill", "larva", "crumbs", 6, "crawl", "An ant is small but strong."),
    "butterfly": ("nothing at all", "a meadow", "caterpillar", "nectar", 6, "fly", "A butterfly has bright wings."),
    "snail": ("nothing at all", "its shell", "hatchling", "leaves", 0, "crawl", "A snail is very slow."),
    "penguin": ("honk", "the ice", "chick", "fish", 2, "swim", "A penguin is a bird that cannot fly."),
    "camel": ("grunt", "the desert", "calf", "dry plants", 4, "walk", "A camel has a hump."),
    "hamster": ("squeak", "a cage", "pup", "seeds", 4, "run", "A hamster keeps food in its cheeks."),
    "seagull": ("screech", "a cliff", "chick", "fish", 2, "fly", "A seagull lives near the sea."),
}
# From small to large: a question of size compares two places in this list.
BY_SIZE = ("ant", "bee", "snail", "spider", "mouse", "hamster", "frog", "squirrel", "hedgehog", "rabbit", "cat", "fox", "dog", "sheep",
           "pig", "donkey", "cow", "horse", "camel", "elephant", "whale")

JOBS = {  # job: what they do, where they work, what they use
    "baker": ("makes bread and cakes", "in a bakery", "flour and an oven"),
    "farmer": ("grows food and keeps animals", "on a farm", "a plough"),
    "teacher": ("helps children learn", "in a school", "books and chalk"),
    "doctor": ("helps sick people", "in a clinic", "bandages and medicine"),
    "miller": ("grinds grain into flour", "in a mill", "millstones"),
    "smith": ("makes things of iron", "in a forge", "a hammer and a fire"),
    "librarian": ("looks after books", "in a library", "a list of all the books"),
    "fisherman": ("catches fish", "on a boat", "a net"),
    "tailor": ("makes clothes", "in a small shop", "a needle and thread"),
    "carpenter": ("makes things of wood", "in a workshop", "a saw and a hammer"),
    "gardener": ("takes care of plants", "in a garden", "a spade and a watering can"),
    "painter": ("paints pictures", "in a studio", "brushes and paint"),
    "cook": ("makes meals", "in a kitchen", "pots and pans"),
    "shepherd": ("takes care of sheep", "on a meadow", "a long stick"),
    "sailor": ("sails a ship", "on the sea", "ropes and sails"),
    "firefighter": ("puts out fires", "at the fire station", "a hose"),
    "potter": ("makes pots and cups", "in a workshop", "clay and a wheel"),
    "shoemaker": ("makes and mends shoes", "in a small shop", "leather and nails"),
    "postman": ("brings letters", "on the road", "a big bag"),
    "clockmaker": ("mends clocks", "in a small shop", "tiny wheels and springs"),
    "builder": ("builds houses", "on a building site", "bricks and stones"),
    "singer": ("sings songs", "on a stage", "a good voice"),
    "bridge keeper": ("looks after the bridge", "on the bridge", "a lamp and a bell"),
}

COLOURS = ["red", "blue", "green", "yellow", "orange", "purple", "white", "black", "brown", "pink", "grey", "golden", "silver"]
COLOUR_OF = {
    "the sky": "blue", "the grass": "green", "the sun": "yellow", "snow": "white", "milk": "white", "a banana": "yellow", "a tomato": "red",
    "a carrot": "orange", "a lemon": "yellow", "coal": "black", "the night": "black", "a cloud": "white", "a strawberry": "red",
    "a frog": "green", "a raven": "black", "chocolate": "brown", "a leaf in summer": "green", "a plum": "purple", "blood": "red",
    "salt": "white", "sand": "yellow", "a fire engine": "red", "an elephant": "grey", "a pig": "pink", "the sea": "blue",
    "a pumpkin": "orange", "a cucumber": "green", "wood": "brown", "flour": "white", "a stone": "grey", "butter": "yellow",
}

OPPOSITES = [
    ("hot", "cold"), ("big", "small"), ("tall", "short"), ("fast", "slow"), ("day", "night"), ("up", "down"), ("left", "right"),
    ("happy", "sad"), ("open", "closed"), ("full", "empty"), ("wet", "dry"), ("hard", "soft"), ("loud", "quiet"), ("light", "dark"),
    ("old", "young"), ("strong", "weak"), ("near", "far"), ("early", "late"), ("clean", "dirty"), ("heavy", "light"), ("sweet", "sour"),
    ("good", "bad"), ("yes", "no"), ("in", "out"), ("first", "last"), ("high", "low"), ("thick", "thin"), ("rich", "poor"),
    ("black", "white"), ("begin", "end"), ("give", "take"), ("push", "pull"), ("friend", "enemy"), ("brave", "afraid"), ("true", "false"),
    ("wide", "narrow"), ("inside", "outside"), ("over", "under"), ("before", "after"), ("rough", "smooth"), ("win", "lose"),
    ("summer", "winter"), ("laugh", "cry"), ("asleep", "awake"), ("sharp", "blunt"), ("always", "never"), ("front", "back"), ("top", "bottom"),
]

CATEGORIES = {  # plural: (singular, members)
    "fruits": ("fruit", "apple banana pear plum cherry grape lemon orange peach strawberry".split()),
    "vegetables": ("vegetable", "carrot potato onion cabbage pea pumpkin cucumber bean".split()),
    "animals": ("animal", "cat dog cow horse sheep fox bear rabbit mouse frog".split()),
    "birds": ("bird", "owl duck hen goose raven parrot penguin seagull".split()),
    "colours": ("colour", "red blue green yellow orange purple white black brown pink".split()),
    "tools": ("tool", "hammer saw spade needle rake axe drill broom".split()),
    "clothes": ("piece of clothing", "hat coat shirt shoe sock scarf glove dress".split()),
    "toys": ("toy", "ball doll kite puzzle drum top train swing".split()),
    "pieces of furniture": ("piece of furniture", "chair table bed shelf desk sofa stool cupboard".split()),
    "vehicles": ("vehicle", "boat train cart bus ship bicycle car wagon".split()),
    "flowers": ("flower", "rose tulip daisy lily sunflower violet poppy".split()),
    "insects": ("insect", "bee ant butterfly fly beetle".split()),
    "drinks": ("drink", "water milk tea juice cocoa lemonade".split()),
    "seasons": ("season", "spring summer autumn winter".split()),
}
UNCOUNTED = {"water", "milk", "tea", "juice", "cocoa", "lemonade"}  # "Water is a drink.", without article

USES = {  # thing: what it is for
    "a knife": "to cut bread", "a spoon": "to eat soup", "a cup": "to drink tea", "a bed": "to sleep", "a chair": "to sit",
    "a key": "to open a lock", "a lamp": "to make light", "an umbrella": "to stay dry in the rain", "a broom": "to sweep the floor",
    "a pencil": "to write and draw", "a boat": "to cross the water", "a clock": "to tell the time", "a needle": "to sew clothes",
    "a hammer": "to hit nails", "a saw": "to cut wood", "soap": "to wash our hands", "a book": "to read stories", "an oven": "to bake bread",
    "a bridge": "to cross a river", "a coat": "to stay warm", "a map": "to find the way", "a rope": "to tie things", "a bucket": "to carry water",
    "a net": "to catch fish", "a bell": "to call people", "a ladder": "to climb up", "scissors": "to cut paper", "a comb": "to tidy our hair",
    "a mirror": "to see our own face", "a basket": "to carry apples", "a spade": "to dig a hole", "a drum": "to make music",
    "a towel": "to get dry", "glasses": "to see better", "a stove": "to cook soup", "a fan": "to cool the air",
}
MADE_OF = {
    "a window": "glass", "a table": "wood", "a nail": "iron", "a book": "paper", "bread": "flour", "a shoe": "leather", "a wall": "stone",
    "a scarf": "wool", "a candle": "wax", "cheese": "milk", "butter": "milk", "a pot": "clay", "ice": "water", "a snowman": "snow",
    "a ring": "gold", "jam": "fruit", "a tyre": "rubber", "a nest": "twigs", "a boat": "wood", "a horseshoe": "iron", "juice": "fruit",
}
BODY = [("see", "eyes"), ("hear", "ears"), ("smell", "nose"), ("taste", "tongue"), ("walk", "legs"), ("hold things", "hands"),
        ("think", "head"), ("bite", "teeth"), ("run", "feet"), ("speak", "mouth"), ("touch", "fingers")]
SHAPES = {"triangle": 3, "square": 4, "rectangle": 4, "pentagon": 5, "hexagon": 6}
COUNTS = [("legs", "a dog", 4), ("legs", "a bird", 2), ("legs", "a spider", 8), ("legs", "an ant", 6), ("wheels", "a bicycle", 2),
          ("wheels", "a car", 4), ("eyes", "a cat", 2), ("fingers", "one hand", 5), ("fingers", "two hands", 10), ("ears", "a rabbit", 2),
          ("days", "a week", 7), ("months", "a year", 12), ("seasons", "a year", 4), ("legs", "a chair", 4), ("hours", "a day", 24),
          ("wings", "a butterfly", 4), ("legs", "a cow", 4), ("legs", "a hen", 2), ("legs", "a bee", 6), ("minutes", "an hour", 60),
          ("toes", "one foot", 5), ("legs", "a horse", 4), ("legs", "a table", 4), ("wings", "a bird", 2), ("tails", "a cat", 1)]

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
SEASONS = ["spring", "summer", "autumn", "winter"]
SEASON_FACTS = {"spring": "the flowers begin to grow", "summer": "it is warm and the days are long",
                "autumn": "the leaves fall from the trees", "winter": "it is cold and snow falls"}
NUMBER_WORDS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
                "eighteen nineteen twenty").split()

WHY = [  # question, answer
    ("do we sleep", "We sleep because our bodies need rest"), ("do birds have wings", "Birds have wings because they need them to fly"),
    ("is it dark at night", "It is dark at night because the sun is on the other side of the world"),
    ("does it rain", "It rains because the clouds are full of water"), ("do we eat", "We eat because food gives us strength"),
    ("do plants need water", "Plants need water because they drink it with their roots"),
    ("do we wear coats", "We wear coats because they keep us warm"), ("does ice melt", "Ice melts because it gets warm"),
    ("do bees fly to flowers", "Bees fly to flowers because they collect nectar"),
    ("do squirrels hide nuts", "Squirrels hide nuts because they need food in winter"),
    ("do we wash our hands", "We wash our hands because we want them to be clean"),
    ("do boats float", "Boats float because they are lighter than the water they push away"),
    ("do people read books", "People read books because they want to learn and to dream"),
    ("do we say sorry", "We say sorry because we want to make things right again"),
    ("do friends share", "Friends share because they want each other to be happy"),
    ("do cats have soft paws", "Cats have soft paws because they want to walk quietly"),
    ("do leaves fall", "Leaves fall because the trees rest in winter"), ("do we drink water", "We drink water because we are thirsty"),
    ("do houses have roofs", "Houses have roofs because they keep out the rain"),
    ("do we have ears", "We have ears because we want to hear"), ("does a sheep have wool", "A sheep has wool because it keeps the sheep warm"),
    ("do we need light", "We need light because we want to see"), ("does a fire burn", "A fire burns because it has wood and air"),
    ("does a windmill turn", "A windmill turns because the wind pushes its sails"),
]
WHAT_IS = {  # a thing explained in one sentence
    "rain": "Rain is water that falls from the clouds.", "snow": "Snow is frozen water that falls from the sky in winter.",
    "a friend": "A friend is somebody who likes you and helps you.", "a river": "A river is a long stream of water that flows to the sea.",
    "a forest": "A forest is a place with many trees.", "the sun": "The sun is a star that gives us light and warmth.",
    "the moon": "The moon is a round thing in the night sky.", "a star": "A star is a small light in the night sky.",
    "wind": "Wind is air that moves.", "a hill": "A hill is a high place, but smaller than a mountain.", "ice": "Ice is water that is frozen.",
    "a story": "A story tells what happened to somebody.", "a village": "A village is a small place where people live together.",
    "a dream": "A dream is a picture that you see when you sleep.", "bread": "Bread is food made of flour and water.",
    "honey": "Honey is sweet food made by bees.", "a rainbow": "A rainbow is a band of colours in the sky after the rain.",
    "a cloud": "A cloud is a lot of tiny drops of water in the sky.", "a lake": "A lake is a large water with land all around it.",
    "the sea": "The sea is a very large water, and it is salty.", "a promise": "A promise is a word that you must keep.",
    "a secret": "A secret is something that you do not tell.", "a map": "A map is a picture that shows the way.",
    "a shadow": "A shadow is a dark shape where the light does not fall.", "fog": "Fog is a cloud that lies on the ground.",
    "a question": "A question asks for something that you want to know.", "a joke": "A joke is a short story that makes people laugh.",
    "thunder": "Thunder is the loud noise after lightning.", "a garden": "A garden is a place where flowers and vegetables grow.",
    "a dragon": "A dragon is a big animal with wings that lives in stories.", "a giant": "A giant is a very tall person who lives in stories.",
}
RHYMES = [["cat", "hat", "mat", "rat"], ["dog", "frog", "log", "fog"], ["tree", "bee", "sea", "key"], ["moon", "spoon", "soon"],
          ["house", "mouse"], ["cake", "lake", "snake"], ["light", "night", "bright"], ["star", "car", "far", "jar"],
          ["king", "ring", "sing", "spring"], ["boat", "coat", "goat"], ["fish", "dish", "wish"], ["bell", "well", "shell"],
          ["fox", "box"], ["bread", "red", "bed"], ["rain", "train", "chain"], ["hill", "mill"], ["nose", "rose"], ["day", "play", "hay", "way"]]
PLURALS = {"cat": "cats", "dog": "dogs", "mouse": "mice", "child": "children", "man": "men", "woman": "women", "foot": "feet",
           "tooth": "teeth", "goose": "geese", "sheep": "sheep", "fish": "fish", "leaf": "leaves", "knife": "knives", "box": "boxes",
           "fox": "foxes", "baby": "babies", "berry": "berries", "tree": "trees", "house": "houses", "book": "books", "apple": "apples",
           "bird": "birds", "star": "stars", "wolf": "wolves", "dish": "dishes", "story": "stories", "boat": "boats", "key": "keys",
           "egg": "eggs", "cow": "cows", "hand": "hands", "door": "doors", "loaf": "loaves", "city": "cities"}
PAST = {"go": "went", "see": "saw", "run": "ran", "eat": "ate", "find": "found", "give": "gave", "take": "took", "make": "made",
        "sing": "sang", "swim": "swam", "walk": "walked", "play": "played", "jump": "jumped", "help": "helped", "come": "came",
        "buy": "bought", "think": "thought", "sleep": "slept", "fly": "flew", "fall": "fell", "laugh": "laughed", "bring": "brought",
        "say": "said", "tell": "told", "write": "wrote", "read": "read", "build": "built", "lose": "lost", "win": "won", "hide": "hid"}
JOKES = [
    ("Why did the duck cross the road?", "Because the hen had a day off!"), ("What did the wall say to the other wall?", "Let us meet at the corner!"),
    ("Why was the book so warm?", "It had a very long cover!"), ("What has hands but cannot clap?", "A clock!"),
    ("What gets wet when it dries?", "A towel!"), ("What has teeth but cannot bite?", "A comb!"), ("Why did the cloud stay at home?", "It felt a bit under the weather!"),
    ("What runs but has no legs?", "A river!"), ("What has a neck but no head?", "A bottle!"), ("What goes up when the rain comes down?", "An umbrella!"),
    ("Why did the snail take the train?", "It was in a hurry!"), ("What has many leaves but is not a tree?", "A book!"),
]

# Rare words of the wide world. Questions about them teach the model to say that it does not know.
UNKNOWN_TOPICS = ("Paris|London|Tokyo|Berlin|China|Africa|America|the president|the government|a computer|the internet|football|algebra|"
                  "chemistry|physics|Mars|Jupiter|gravity|electricity|a volcano|dinosaurs|the stock market|money in banks|Shakespeare|Einstein|"
                  "Python|programming|calculus|history|the Roman Empire|World War Two|a virus|vaccines|atoms|quantum physics|the human brain|"
                  "tax law|politics|movies|smartphones|video games|jazz|opera|sushi|pizza|coffee|tennis|the Olympic Games|satellites|rockets|"
                  "philosophy|economics|statistics|Latin|French|Japanese|the speed of light|DNA|evolution|photosynthesis|global warming").split("|")
