# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The second half of the plots, in the form that corpus_plots.py explains, and the morals of all."""

import corpus_world as world
from corpus_plots import PLOTS, TIMES, plot  # PLOTS is handed on, now complete

plot(
    "party",
    "a birthday|a party|a surprise party",
    [
        "It was the birthday of {A}. {He} woke up early. [But nobody said anything.|{He} waited for a song, but "
            "the house was quiet.] \"[Has everybody forgotten it|Nobody thinks of me],\" {he} said [sadly|with a "
            "sigh].",
        "{He} went to {B}, but {B} was [not at home|too busy to talk]. {He} went to {C}, but {C} [only said, \"I "
            "have no time today.\"|shut the door quickly.] {A} [sat down {spot}|went to {place}] and felt very "
            "alone.",
        "In the [evening|afternoon], {A} [walked home|went home slowly]. [It was dark inside.|The door was open.] "
            "{He} opened the door, and then: \"Surprise!\" Everybody was there! [There were lanterns and {colour} "
            "balloons.|The room was full of light.]",
        "{B} had [baked a cake|made a cake] with [five|six|seven|eight|nine] candles. {C} gave {him} {gift}. "
            "\"[Did you think that we forgot you?|We had to keep it secret!]\" said {B}. They [sang and "
            "danced|laughed and ate] until the moon was high.",
        "\"This is the best birthday of my life,\" said {A}. [And {he} made a wish, but {he} told nobody what it "
            "was.|And {he} was not alone at all.]",
    ],
    [
        ("Whose birthday was it?", "It was the birthday of {A}."),
        ("What did {C} give to {A}?", "{C} gave {A} {gift}."),
        ("Who made the cake?", "{B} made the cake."),
        (
            "Why was {A} sad at first?",
            "{A} was sad because {he} thought that everybody had forgotten the birthday.",
        ),
    ],
)


def setup_magic(w, s):
    s["wish"], s["got"] = w.pick(
        [
            ("to fly", "rose up into the air like a bird"),
            ("to be very small", "was as small as a thumb"),
            ("to talk with animals", "understood every word of the birds"),
            ("to be very tall", "was as tall as a house"),
            ("to never be tired", "could run all day and all night"),
            ("to be invisible", "could not be seen by anybody"),
            ("to make everything sweet", "turned all soup into honey"),
        ]
    )
    s["lesson"] = {
        "to fly": "the wind was cold and {he} could not get down",
        "to be very small": "a cup of tea was like a lake",
        "to talk with animals": "the crows never stopped talking",
        "to be very tall": "{he} did not fit through any door",
        "to never be tired": "{he} missed {his} dreams",
        "to be invisible": "nobody said hello to {him}",
        "to make everything sweet": "{he} wanted a bit of salt",
    }[s["wish"]]
    s["lesson"] = w.say(s["lesson"], s)
    s["wand"] = w.pick(
        ["golden fish", "old lamp", "silver key", "magic stone", "little star", "talking mirror", "magic ring"]
    )


plot(
    "magic",
    "magic|a wish|a magic thing",
    [
        TIMES + ", {A} found {a wand} {spot}. \"[You may have one wish|I will give you one wish],\" said the "
            "{wand}. {A} [thought for a while|did not think for long]. \"I wish {wish}!\" {he} said.",
        "[There was a flash of {colour} light.|The {wand} began to shine.] And then {A} {got}. \"[This is "
            "wonderful|Look at me]!\" {he} [cried|laughed].",
        "At first it was great fun. But [soon|after some time] {lesson}. {A} [was not happy any more|began to "
            "feel sad]. {B} [asked|said], \"[What is the matter|Is that what you wanted], {A}?\"",
        "So {A} went back to the {wand}. \"Please, [make me as I was before|take the wish back],\" {he} said. "
            "\"[Are you sure|Is that your last word]?\" asked the {wand}. \"Yes,\" said {A}. [There was a second "
            "flash of light|The {wand} shone again], and everything was as before.",
        "{A} [hugged {B}|laughed and ran home]. \"[I am fine just as I am|It is good to be me],\" {he} said. [And "
            "that was true.|]",
    ],
    [
        ("What did {A} find?", "{A} found {a wand}."),
        ("What did {A} wish?", "{A} wished {wish}."),
        ("Why was {A} not happy any more?", "{A} was not happy because {lesson}."),
        ("Where was the {wand}?", "The {wand} was {spot}."),
    ],
    setup_magic,
)

plot(
    "dragon",
    "a sad dragon|a scary guest|making a new friend|friendship",
    [
        "One day, a [huge|big|terrible] {beast} came to {place}. [Everybody ran away and shut the doors.|The "
            "people were afraid.] \"[What does it want|Who will help us]?\" they asked.",
        "Only {A} [went outside|did not run]. {He} saw that the {beast} was [crying|sad]. [Big tears fell on the "
            "ground.|It made a sound like rain in a barrel.] \"Why are you sad?\" asked {A}. \"[I have no "
            "friends|Nobody wants to play with me],\" said the {beast}. \"[Everybody runs away|They are all "
            "afraid of me].\"",
        "\"[I am not afraid|Then I will be your friend],\" said {A}. \"What do you like to do?\" \"I like to "
            "{hobby2},\" said the {beast}. So they began to {hobby2} together. [They laughed so loud that the "
            "windows shook.|It was a lot of fun.]",
        "[One by one, the people came out.|Soon the others came closer.] They saw that the {beast} was "
            "[gentle|friendly]. {B} brought {a food}, and {C} brought {a food2}. The {beast} [thanked them and "
            "smiled|had never been so happy].",
        "[Since then the {beast} lives near {place}.|The {beast} stayed for the whole summer.] [In winter it "
            "keeps everybody warm.|It carries the children on its back.|And when somebody is sad, it knows what "
            "to do.] [So {A} learned that a scary face can hide a kind heart.|]",
    ],
    [
        ("Who came to {place}?", "A {beast} came to {place}."),
        ("Why was the {beast} sad?", "The {beast} was sad because it had no friends."),
        ("Who was not afraid?", "{A} was not afraid."),
        ("What did the {beast} like to do?", "The {beast} liked to {hobby2}."),
    ],
    lambda w,
    s: s.update(
        beast=w.other(
            ["dragon", "giant", "bear", "monster", "troll", "wolf", "lion", "robot"],
            s["Anoun"],
            s["Bnoun"],
            s["Cnoun"],
        ),
        hobby2=w.pick(
            [
                "dance", "sing", "play ball", "tell jokes", "look at the stars", "draw in the sand",
                "roll down the hill", "sing old songs",
            ]
        ),
    ),
)


def setup_count(w, s):
    n = w.between(3, 9)
    price = w.between(1, n - 1)
    words = world.NUMBER_WORDS
    s["n"], s["price"], s["rest"], s["item"] = words[n], words[price], words[n - price], w.pick(
        ["kite", "whistle", "hat", "book", "lantern", "puppet", "flute", "scarf", "cup", "toy boat"]
    )
    s["pcoins"] = "coin" if price == 1 else "coins"
    s["rcoins"] = "coin" if n - price == 1 else "coins"
    s["verb"] = "was" if n - price == 1 else "were"


plot(
    "market",
    "money|buying something|a day at the market|shopping|coins",
    [
        "{A} had {n} coins. {He} [put them into {his} pocket|held them tight in {his} hand] and went to the "
            "market. [There were so many people!|{sky}, and the market was full.|It smelled of bread and oranges.]",
        "{He} saw [apples and pears|cheese and honey|pots and pans], but {he} did not want to buy them. Then {he} "
            "saw {a colour} {item}. \"How much is the {item}?\" asked {A}. \"It is {price} {pcoins},\" said {C}, "
            "who sold {such}.",
        "{A} counted {his} coins. Then {he} paid {price} {pcoins} and took the {item}. Now {he} had {rest} "
            "{rcoins} left. [\"Thank you, and come again,\" said {C}.|{He} was very careful with the {item}.]",
        "On the way home, {A} met {B}. \"[What a fine {item}!|Where did you get that {item}?]\" said {B}. \"I "
            "bought it at the market[| for {price} {pcoins}],\" said {A}. [They looked at it together.|\"Would "
            "you like to try it?\"]",
        "[At home|In the evening], {A} put the {rest} {rcoins} into a [small box|jar]. [\"One day I will buy "
            "something for {B},\" {he} said.|Then {he} went to bed with the {item} next to {him}.]",
    ],
    [
        ("How many coins did {A} have at first?", "{A} had {n} coins."),
        ("What did {A} buy?", "{A} bought {a colour} {item}."),
        ("How much was the {item}?", "The {item} was {price} {pcoins}."),
        ("How many coins were left?", "{rest} {rcoins} {verb} left."),
        ("Where did {A} put the rest of the coins?", None),
    ],
    lambda w,
    s: (setup_count(w, s), s.update(such=w.pick(["many things", "toys and clothes", "all kinds of things"]))),
)

plot(
    "newfriend",
    "a new friend|a new neighbour|being lonely|friends",
    [
        "{A} [was often alone|had nobody to play with|felt lonely]. [The days were long.|\"I wish I had a "
            "friend,\" {he} said to the moon.]",
        TIMES + ", {Bmeet} moved into the house next door. {A} looked [over the fence|out of the window]. {B} "
            "[had {a obj}|was carrying {a obj}]. [{A} wanted to say hello, but {he} was too shy.|Their eyes met, "
            "and {A} looked away.]",
        "The next day, {a wind} [carried|blew] the {thing} over the fence. It landed right in front of {A}. {He} "
            "[picked it up|took it in {his} hands]. [Now or never, {he} thought.|{His} heart beat fast.] \"Is "
            "this yours?\" {he} asked. \"Yes!\" said {B}. \"[Do you want to play|Shall we play together]?\"",
        "They played [until the sun went down|the whole day]. They [climbed a tree|built a small dam|told each "
            "other stories|made a house of branches] and ate {a food}. {B} [had a loud laugh|knew many games]. "
            "{A} had never laughed so much.",
        "\"Will you come again tomorrow?\" asked {A}. \"[Of course|Tomorrow and every day],\" said {B}. [That "
            "night the moon looked through the window and smiled.|So {A} was never lonely again.|And that is how "
            "they became friends.]",
    ],
    [
        ("Who moved into the house next door?", "{B} moved into the house next door."),
        ("What did the wind carry over the fence?", "The wind carried the {obj} over the fence."),
        ("How did {A} feel at first?", "{A} felt lonely at first."),
        ("What did they eat?", "They ate {a food}."),
    ],
    lambda w,
    s: s.update(wind=w.pick(["strong wind", "gust of wind", "sudden wind"])),
)


def setup_treasure(w, s):
    s["m1"], s["m2"] = w.some(
        [
            "the old oak", "the broken bridge", "the white rock", "the empty house", "the waterfall",
            "the three stones", "the crooked tree",
        ],
        2,
    )
    s["steps"] = w.pick(["ten", "twelve", "five", "seven", "twenty", "eight"])
    s["inside"] = w.pick(
        [
            "gold coins", "old letters", "a silver crown", "a hundred marbles", "seeds and a note",
            "an old book of songs", "shining stones",
        ]
    )


plot(
    "treasure",
    "a treasure|a map|a secret|pirates",
    [
        TIMES + ", {A} found an old map {spot}. There was a [red|black] cross on it. \"A treasure!\" [cried|said] "
            "{A}. {He} ran to {B}. \"[Come with me|Let us find it]!\"",
        "The map said: Go to {m1}. Then go to {m2}. From there take {steps} steps to the [north|south|east|west] "
            "and dig. [\"That is easy,\" said {B}.|They took a spade and a lamp.]",
        "They went to {m1}. [An owl looked down at them.|It was very quiet there.] Then they went to {m2}. [They "
            "got wet feet.|{B} was a little afraid.] They counted {steps} steps, and then they began to dig. "
            "[They dug and dug.|It was hard work.]",
        "[Clonk!|Suddenly the spade hit something hard.] It was an old box. [The lid was heavy.|The lock was full "
            "of rust.] They opened it together. Inside they found {inside}. {treas}",
        "[They shared it fairly.|They took it to the village, and everybody looked at it.] \"[The best thing was "
            "the search|The best treasure is a day with you],\" said {B}, and {A} [nodded|smiled].",
    ],
    [
        ("What did {A} find?", "{A} found an old map."),
        ("Where was the map?", "The map was {spot}."),
        ("What was in the box?", "They found {inside} in the box."),
        ("How many steps did they take?", "They took {steps} steps."),
        ("Who went with {A}?", "{B} went with {A}."),
    ],
    lambda w,
    s: (
        setup_treasure(w, s),
        s.update(treas=w.say("[\"[How beautiful|Look at that]!\" {he} said.|They could not believe it.]", s)),
    ),
)

plot(
    "storm",
    "a storm|the rain|the weather|a rainy day|the wind",
    [
        "[One night|One evening|One autumn day], a [great|terrible] storm came up. [The sky turned black.|The "
            "wind howled around the houses.] {A} [was safe at home|sat {home2}] and listened to the rain.",
        "Then there was a knock at the door. Outside stood {Bmeet}, wet from head to foot. \"[The wind has broken "
            "my roof|The water is in my house|My house is gone],\" said {B}. \"[May I come in|Can I stay here]?\"",
        "\"[Of course|Come in quickly]!\" said {A}. {He} [gave {B} a dry blanket|made a fire] and {a food}. [Soon "
            "{B} was warm again.|They sat by the fire and told stories.] The storm [went on all night|shook the "
            "windows], but inside it was [warm|safe].",
        "In the morning the [storm was over|sun came out]. There was a rainbow [over {place}|in the sky]. {A} "
            "took {his} tools and went with {B}. Together they [repaired the roof|built the house again|cleaned "
            "the house]. {C} [came and helped too|brought nails and boards].",
        "\"[Now it is better than before|What would I do without you],\" said {B}. [And when the next storm came, "
            "nobody was alone.|{A} was happy, because helping makes the heart warm.]",
    ],
    [
        ("Who knocked at the door?", "{B} knocked at the door."),
        ("What did {A} give to {B}?", "{A} gave {B} {a food}."),
        ("What was in the sky in the morning?", "There was a rainbow in the sky."),
        ("Who else helped?", "{C} helped too."),
    ],
    lambda w,
    s: s.update(home2=w.pick(["in {his} chair", "by the window", "next to the stove"]).replace("{his}", s["his"])),
)

plot(
    "learn",
    "learning something|practice|not giving up|trying again",
    [
        "{A} wanted to learn to {skill}. [All the others could do it.|{He} had seen it at the fair.|{He} dreamed "
            "of it every night.] But it was not easy.",
        "On {d1}, {A} tried for the first time. {fail} On {d2}, {he} tried again. [It was a little better, but "
            "not good.|It went wrong again.] \"I will never learn it,\" said {A} and [sat down|kicked a stone].",
        "{B} had seen it all. \"[I also needed a long time|Nobody can do it on the first day],\" said {B}. \"[You "
            "must try once more than you fail|Go slowly and do not give up]. I will show you.\" And {B} showed "
            "{him} [how to do it|a little trick].",
        "So {A} practised [every day|in the morning and in the evening]. [{His} arms hurt.|Sometimes {he} was "
            "angry.] But on {d3}, it suddenly worked! {A} could {skill}! \"[I can do it|Did you see that]?\" {he} "
            "[shouted|cried].",
        "{B} [clapped|was proud of {him}]. [Later {A} taught it to others.|\"Now you can teach me something,\" "
            "said {B}.] [And {he} always told them: do not give up.|]",
    ],
    [
        ("What did {A} want to learn?", "{A} wanted to learn to {skill}."),
        ("Who helped {A}?", "{B} helped {A}."),
        ("On which day did {A} try for the first time?", "{A} tried for the first time on {d1}."),
        ("When did it work?", "It worked on {d3}."),
    ],
    lambda w,
    s: (
        s.update(
            zip(
                ("skill", "fail"),
                w.pick(
                    [
                        ("swim", "{He} swallowed a lot of water."),
                        ("whistle", "Only air came out."),
                        ("ride a bicycle", "{He} fell into a bush."),
                        ("juggle", "All the balls fell down."),
                        ("skate", "{He} sat down on the ice."),
                        ("play the flute", "It sounded like a sick goose."),
                        ("bake bread", "The bread was as hard as a stone."),
                        ("dance", "{He} stepped on {his} own feet."),
                        ("read", "The letters danced before {his} eyes."),
                        ("row a boat", "The boat went round in circles."),
                    ]
                ),
            )
        ),
        s.update(fail=w.say(s["fail"], s)),
        s.update(
            zip(("d1", "d2", "d3"), w.pick([world.DAYS[:3], world.DAYS[1:4], world.DAYS[2:5], world.DAYS[4:]]))
        ),
    ),
)


plot(
    "night",
    "the night|the moon|the stars|going to sleep|a bedtime story|a dream",
    [
        "It was night, and {A} could not sleep. [{He} turned to the left and to the right.|{He} counted sheep, "
            "but it did not help.] The moon [looked in at the window|was big and round].",
        "\"[Why are you awake|Can you not sleep]?\" asked a voice. It was {B}. \"[I am thinking of {place}|My "
            "head is too full|I am not tired],\" said {A}. \"[Then come outside|Let us look at the sky],\" said "
            "{B}.",
        "They [sat down on the grass|sat {spot}]. Above them were [thousands of stars|more stars than they could "
            "count]. \"That one looks like {a thing},\" said {A}. \"And that one looks like {a food},\" said {B}. "
            "[A star fell down the sky.|Far away an owl called.] \"[Make a wish!|Did you see that?]\" said {B}.",
        "[{A} wished for something, but {he} did not say it.|They talked in low voices about {place2}.] [The "
            "night was warm.|The wind was soft.] After a while, {A} began to yawn. {His} eyes [fell shut|closed].",
        "{B} [put a blanket over {him}|sang a quiet song]. {A} dreamed of {place}. [And the moon watched over "
            "them until the morning.|Good night, {A}.|In the morning, {he} did not know how {he} got into {his} "
            "bed.]",
    ],
    [
        ("Why did {A} go outside?", "{A} went outside because {he} could not sleep."),
        ("Who was with {A}?", "{B} was with {A}."),
        ("What did {A} dream of?", "{A} dreamed of {place}."),
        ("What did one star look like?", "One star looked like {a thing}."),
    ],
)

plot(
    "winter",
    "winter|snow|a snowman|a cold day",
    [
        "[In the night it had snowed.|It was the first day of winter.|Winter had come.] Everything was white. {A} "
            "[put on {his} {colour} scarf|ran outside at once]. \"[Snow|So much snow]!\" {he} [shouted|cried].",
        "{A} and {B} made a big ball of snow, then a [smaller|second] one, and then a small one for the head. "
            "\"It needs a nose,\" said {B}. {A} got a carrot. \"And eyes,\" said {A}. {B} found two black "
            "[stones|buttons]. Last of all, they gave it {a obj}.",
        "\"[Good evening|Hello],\" said the snowman. {A} and {B} [jumped back|could not believe it]. \"[You can "
            "talk|You are alive]!\" said {A}. \"[Only when it snows|Only today],\" said the snowman. \"[Shall we "
            "play|Do you know a game]?\"",
        "They [slid down the hill|played in the snow] until their fingers were cold. Then {C} came by with a pot "
            "of hot [tea|cocoa|soup]. \"[Not for me|I would melt],\" said the snowman, and everybody laughed.",
        "[In spring the snowman was gone.|Some weeks later the sun melted the snow.] Only the {obj} lay in the "
            "grass. {A} [was sad for a moment|kept it carefully]. \"[Next winter he will come back|We will make "
            "him again],\" said {B}.",
    ],
    [
        ("What did they make?", "They made a snowman."),
        ("What was the nose made of?", "The nose was a carrot."),
        ("Who came by with a pot?", "{C} came by with a pot."),
        ("What lay in the grass in the end?", "The {obj} lay in the grass."),
    ],
)

plot(
    "riddle",
    "a riddle|a clever hero|a troll|a bridge",
    [
        TIMES + ", {A} came to a bridge. [{He} was on the way to {place}.|On the other side was {place}.] But on "
            "the bridge sat {guard}. \"[Stop|Halt]!\" said the {gnoun}. \"Nobody may cross before answering my "
            "riddle.\"",
        "\"[Ask|I am ready],\" said {A}. \"{riddle}\" asked the {gnoun}. {A} [thought hard|walked up and down]. "
            "[{He} looked at the water.|{He} scratched {his} head.] \"Is it {wrong}?\" {he} asked. "
            "\"[Wrong|No]!\" said the {gnoun} [and laughed|with a grin]. \"[One more try|You may try once more].\"",
        "Then {B} came along and [whispered|said], \"[Think of what you see every day|It is easier than you "
            "think].\" {A} [closed {his} eyes|looked around]. [Suddenly {he} knew it.|Then {he} smiled.] \"It is "
            "{answer}!\" said {A}.",
        "The {gnoun} [was surprised|opened its mouth and closed it again]. \"That is right,\" it said. \"[You may "
            "cross|You are clever].\" And {A} and {B} crossed the bridge together. [\"Come again,\" called the "
            "{gnoun}. \"I will find a harder one!\"|The {gnoun} even waved.]",
    ],
    [
        ("Who sat on the bridge?", "{guard} sat on the bridge."),
        ("What was the answer to the riddle?", "The answer was {answer}."),
        ("Who helped {A}?", "{B} helped {A}."),
        ("Where did {A} want to go?", "{A} wanted to go to {place}."),
        ("What was the wrong answer?", "The wrong answer was {wrong}."),
    ],
    lambda w,
    s: (
        s.update(
            gnoun=w.other(["troll", "giant", "goat", "raven", "fox", "guard", "dwarf"], s["Anoun"], s["Bnoun"])
        ),
        s.update(guard="a " + w.pick(["big ", "grumpy ", "strange ", "small "]) + s["gnoun"]),
        s.update(
            zip(
                ("riddle", "answer"),
                w.pick(
                    [
                        ("What has hands but cannot clap?", "a clock"),
                        ("What runs but has no legs?", "the river"),
                        ("What has teeth but cannot bite?", "a comb"),
                        ("What is full of holes but holds water?", "a sponge"),
                        ("What follows you all day and leaves you at night?", "my shadow"),
                        ("What gets wet when it dries?", "a towel"),
                        ("What has a neck but no head?", "a bottle"),
                        ("What can you keep after you gave it away?", "a promise"),
                        ("What has many leaves but is not a tree?", "a book"),
                        ("What goes up when the rain comes down?", "an umbrella"),
                    ]
                ),
            )
        ),
        s.update(wrong=w.pick(["a cat", "a stone", "the moon", "a chair", "a fish", "a key", "the wind"])),
    ),
)

EVENTS = [
    "{A} had {a food} for breakfast. [It tasted wonderful.|It was still warm.|{He} ate slowly.]",
    "{He} walked to {place}. [{sky}.|The air smelled of grass.|It was very quiet there.|Nobody was there.]",
    "At {place2}, {he} saw {a colour} bird. [It sang a song.|It flew away at once.|It looked at {him} for a long "
        "time.]",
    "{A} met {B}. \"[Where are you going|How are you today]?\" asked {B}. \"[I am just walking|I am fine],\" said "
        "{A}. [They talked about the weather.|They laughed about a joke.|They walked a little way together.]",
    "{He} sat down {spot} and [rested|thought of nothing|listened to the wind].",
    "On the ground lay {a obj}. {A} [picked it up|put it in {his} bag]. \"[Who lost this|Whose {thing} is "
        "this]?\" {he} said.",
    "{A} and {B} played [a game|hide and seek|with stones]. [{B} won.|{A} won.|Nobody won, but it was fun.]",
    "Then it began to rain. {A} [ran under a tree|did not mind|opened {his} mouth to catch the drops]. [Soon the "
        "sun came back.|There was a rainbow.]",
    "{A} bought {a food2} at the market. [It cost one coin.|The woman gave {him} an extra one.]",
    "{He} helped {C} to carry a heavy basket. \"[Thank you|You are very kind],\" said {C}.",
    "{A} threw stones into the water. [One|Two|Three|Four] of them jumped over the waves.",
    "{He} found a [door|path|hole] that {he} had never seen before. [It led to a small garden.|Behind it there "
        "was only dust.|{He} decided to come back another day.]",
    "A [dog|cat|hen|goat] followed {him} for a while. [\"Do you want to come with me?\" {he} asked.|Then it went "
        "home.]",
    "{A} sang [loudly|quietly]. [{C} sang with {him}.|{C} looked out of the window and smiled.]",
    "{He} wrote {his} name in the sand. [The water took it away.|It looked beautiful.]",
    "{A} climbed [a tree|the hill|a wall] and looked down. [Everything was so small.|{He} could see {place} from "
        "there.]",
    "{C} told {him} about {place2}. [\"One day I will go there,\" said {A}.|{A} listened with big eyes.]",
    "{He} gave {gift} to {B}. [{B} was very happy.|\"For me?\" asked {B}.]",
    "{A} was thirsty and drank from the well. [The water was cold and clear.|It was the best water of the land.]",
    "{He} counted the [birds|clouds|trees]. There were {number} of them.",
]

plot(
    "day",
    "a quiet day|a normal day|a walk|a funny day|nothing special",
    [
        "{e0}",
        "{e1} {e2}",
        "{e3}",
        "{e4} {e5}",
        "[In the evening|When it got dark|At the end of the day], {A} went home. [{He} was tired and happy.|It "
            "had been a good day.|{He} looked at the stars and yawned.] {He} [lay down|went to bed|closed {his} "
            "eyes] and [dreamed of {place}|thought of {B}|fell asleep at once].",
    ],
    [("Where did {A} go in the evening?", "{A} went home in the evening."), ("Who are the friends of {A}?", None)],
    lambda w,
    s: (
        s.update(number=w.pick(world.NUMBER_WORDS[3:15])),
        s.update(
            (f"e{i}", w.say(e, s)) for i,
            e in enumerate(w.pick((EVENTS[:1], EVENTS[1:2])) + w.some(EVENTS[2:], 5))
        ),
    ),
)

# What a plot is about in one sentence, for "What can we learn from the story?".
MORALS = {
    "lost": "together we find more than alone",
    "help": "a good deed always comes back",
    "share": "food tastes better together",
    "make": "a gift made by hand is made with love",
    "journey": "the world is full of kind people",
    "race": "a friend is more important than a race",
    "fear": "brave means that you are afraid and do it anyway",
    "truth": "it is good to tell the truth",
    "grow": "good things need time",
    "trade": "a good trade makes everybody happy",
    "party": "friends do not forget you",
    "magic": "it is good to be who you are",
    "dragon": "a scary face can hide a kind heart",
    "market": "we should be careful with our money",
    "newfriend": "a small hello can make a friend",
    "treasure": "the best treasure is a day with a friend",
    "storm": "helping makes the heart warm",
    "learn": "we must not give up",
    "night": "a friend helps when you cannot sleep",
    "winter": "good days come back",
    "riddle": "we should think before we speak",
    "day": "a quiet day can be a good day",
}
