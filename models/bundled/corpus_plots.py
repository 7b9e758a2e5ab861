# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Plots: each is a chain of scenes over one state, plus the questions that the story answers.

A plot is a row of PLOTS: theme words (what a user may ask for), a set-up that adds slots of its own,
scenes in order, and question/answer templates. The state keeps who has what and where things are,
so that every later sentence and every answer agrees with what was told before.
"""

TIMES = "[One [morning|day|afternoon]|One {day}|On {a weather} [day|morning]]"

# name: (theme words, setup(w, s) or None, scenes, questions)
PLOTS = {}


def plot(name, themes, scenes, questions, setup=None):
    PLOTS[name] = (themes.split("|"), setup, scenes, questions)


plot(
    "lost",
    "something that was lost|a lost thing|looking for something",
    [
        "{A} had {a obj}. [It was a gift from {his} grandmother.|{He} took it everywhere.|{He} had found it long "
            "ago.|{He} liked it more than anything.]",
        TIMES + ", [the {thing} was gone|{A} could not find the {thing}]. [\"Where is my {thing}?\" {he} "
            "[asked|cried].|{He} was very sad.|\"Oh no!\" said {A}. \"My {thing} is gone!\"]",
        "{He} looked {spot2}[, but it was not there|, but the {thing} was not there|. No {thing}]. [Then|After "
            "that] {he} looked {spot3}. [It was not there either.|Nothing. Only dust.|There was only a "
            "[snail|leaf|stone|beetle].]",
        "[Then|Soon] {A} met {Bmeet}. \"[Why are you so sad|What is wrong|Can I help you]?\" asked {B}. \"I have "
            "lost my {thing},\" said {A}. [\"Let us look together,\" said {B}.|\"I will help you,\" said {B}. "
            "\"Four eyes see more than two.\"|\"Do not cry,\" said {B}. \"We will find it.\"]",
        "They [looked and looked|searched for a long time|went back the same way]. [At last|Finally|Then], {B} "
            "looked {spot}. \"[Come here|Look]!\" {bhe} called. There [it was|was the {obj}]!",
        "{A} was [so happy|very glad]. \"[Thank you|Thank you so much], {B}!\" {he} said. [From that day on, {A} "
            "and {B} were friends.|{A} held the {thing} tight and smiled.|They went home together, and {A} shared "
            "{his} {food} with {B}.|After that, {A} always kept {his} {thing} in a safe place.]",
    ],
    [
        ("What did {A} lose?", "{A} lost {his} {obj}."),
        ("Where was the {thing}?", "The {thing} was {spot}."),
        ("Who helped {A}?", "{B} helped {A}."),
        ("Who found the {thing}?", "{B} found the {thing}."),
        ("How did {A} feel at the end?", "{A} was happy."),
        ("What colour was the {thing}?", None),
        ("Where did {A} look first?", "{A} looked {spot2} first."),
    ],
)


def setup_trouble(w, s):
    trouble = [
        (
            "was stuck in the mud",
            "stuck in the mud",
            "pulled with all {his} strength until {B} was free",
            "pulled {B} out of the mud",
        ),
        ("was caught in a net", "caught in a net", "cut the ropes one by one until {B} was free", "cut the net"),
        (
            "had hurt one foot",
            "hurt",
            "put a soft leaf around the foot and gave {B} water",
            "took care of the foot",
        ),
        ("was very cold", "cold", "made a small fire and brought a warm blanket", "made a fire"),
        (
            "was lost and could not find the way home",
            "lost",
            "climbed up a hill, saw the way, and brought {B} home",
            "brought {B} home",
        ),
        ("was very hungry", "hungry", "gave {B} half of {his} {food}", "gave {B} half of {his} {food}"),
        ("was very thirsty", "thirsty", "ran to the well and brought a cup of water", "brought water"),
        ("had fallen into a hole", "in a hole", "let down a long rope and pulled", "pulled {B} out with a rope"),
    ]
    did = w.pick(trouble)
    s["trouble"], s["troubled"] = did[0], did[1]
    s["act"], s["acted"] = w.say(did[2], s), w.say(did[3], s)


plot(
    "help",
    "helping a friend|kindness|helping somebody|being kind",
    [
        TIMES + ", [{sky}. ]{A} [went|walked] to {place}. [{He} was in a good mood.|{He} had {a food} in {his} "
            "bag.|{He} sang a little song.]",
        "On the way {he} heard a [small|soft|weak] voice. \"[Help!|Please help me!|Is somebody there?]\" it said. "
            "{A} looked around and saw {Bmeet}. {B} {trouble}.",
        "[\"You poor thing,\" said {A}.|\"Do not be afraid,\" said {A}.|\"Wait, I will help you,\" said {A}.] "
            "{He} {act}. [It was hard work, but {A} did not give up.|It took a long time.|]",
        "\"[Thank you|You are very kind|You saved me]!\" said {B}. \"[One day I will help you too|I will never "
            "forget this].\" [{A} smiled and went on.|\"It was nothing,\" said {A}.]",
        "[Some days later|A week later|When winter came], {A} was in trouble too. {bentry} [This time {B} came "
            "and helped.|But {B} heard it and came at once.] \"[You helped me, and now I help you|That is what "
            "friends are for],\" said {B}.",
        "[Since then they were friends|From that day on they were the best of friends|After that, they met every "
            "day]. [And both knew: a good deed always comes back.|]",
    ],
    [
        ("What was wrong with {B}?", "{B} {trouble}."),
        ("What did {A} do?", "{A} {acted}."),
        ("Where did {A} go?", "{A} went to {place}."),
        ("Who was in trouble first?", "{B} was in trouble first."),
        ("Why did {B} help {A} later?", "{B} helped {A} because {A} had helped {bhim}."),
    ],
    lambda w,
    s: (
        setup_trouble(w, s),
        s.update(
            bentry=w.say(
                "[{His} cart broke down in the rain.|{He} could not lift a heavy box.|The wind took {his} "
                    "{thing}.|{He} was lost in the fog.|The door of {his} house was stuck.]",
                s,
            )
        ),
    ),
)

plot(
    "share",
    "sharing|food|a hungry friend",
    [
        TIMES + ", {A} had {a food}. [It smelled so good.|It was the last one.|{He} had waited for it all day.] "
            "{He} sat down [under a tree|on a bench|by the river|in the grass] to eat it.",
        "Then {Bmeet} came along. {B} looked at the food and said nothing. [{Bhis} stomach made a loud "
            "noise.|{Bhe} had not eaten since the day before.] \"Are you hungry?\" asked {A}. \"[Yes, very|A "
            "little bit],\" said {B}.",
        "{A} [thought for a moment|looked at the food]. [It was not much.|It was not enough for two, or was it?] "
            "Then {he} [broke it in two|cut it in two] and gave {B} one half. \"[Here, this is for you|Food "
            "tastes better together],\" {he} said.",
        "[They ate and talked and laughed.|They ate slowly and looked at the clouds.|{B} ate every crumb.] \"That "
            "was the best meal of my life,\" said {B}.",
        "The next day, {B} came back with {a food2}. \"[Now it is my turn|Today I share with you],\" {bhe} said. "
            "[From then on they ate together every {day}.|{A} was [surprised and happy|very glad].] [And nobody "
            "was hungry any more.|]",
    ],
    [
        ("What did {A} have?", "{A} had {a food}."),
        ("Who was hungry?", "{B} was hungry."),
        ("What did {B} bring the next day?", "{B} brought {a food2}."),
        ("What did {A} share?", "{A} shared {a food}."),
    ],
)


def setup_make(w, s):
    makes = [
        ("cake", "some flour", "some eggs", "some honey", "put it in the oven", "It smelled wonderful"),
        (
            "soup", "some carrots", "some potatoes", "some salt", "cooked it in a big pot",
            "The steam rose up to the roof",
        ),
        ("kite", "some paper", "some sticks", "a long string", "tied it all together", "It had a long tail"),
        ("boat", "some boards", "some nails", "a piece of cloth", "built it piece by piece", "It had a white sail"),
        ("bird house", "some wood", "some nails", "some paint", "built it piece by piece", "It had a round door"),
        ("scarf", "some wool", "two needles", "a lot of patience", "knitted row after row", "It was long and soft"),
        ("pie", "some apples", "some flour", "some sugar", "put it in the oven", "The whole house smelled of it"),
        (
            "lantern", "some paper", "some glue", "a small candle", "put the parts together",
            "It shone like a little moon",
        ),
    ]
    s["made"], s["part1"], s["part2"], s["part3"], s["work"], s["result"] = w.pick(makes)
    s["shop1"], s["shop2"], s["shop3"] = w.some(
        [
            "the market", "the mill", "the farm", "the shop", "a neighbour", "the old barn", "{his} grandmother",
            "the workshop",
        ],
        3,
    )
    for k in ("shop1", "shop2", "shop3"):
        s[k] = w.say(s[k], s)


plot(
    "make",
    "making something|making a gift|baking or building|a surprise",
    [
        TIMES + ", {A} wanted to make {a made} for {B}, {his} [good|best] friend. [\"It will be a surprise,\" "
            "{he} said.|It was the birthday of {B}.|{B} had been ill for a week.]",
        "For {a made}, {A} needed three things: {part1}, {part2} and {part3}. {He} got {part1} from {shop1}. {He} "
            "got {part2} from {shop2}. And {part3} came from {shop3}.",
        "Then {A} went to work. {He} {work}. [At first it went wrong, and {he} had to start again.|It was not "
            "easy, but {he} took {his} time.|It took the whole [day|afternoon].] {result}.",
        "[In the evening|Then|When it was done], {A} brought the {made} to {B}. \"[This is for you|I made this "
            "for you],\" said {A}. {B} [could not believe {bhis} eyes|jumped with joy|smiled from ear to ear].",
        "\"[You made it yourself|It is perfect]!\" said {B}. \"[Nobody ever made me {a made}|It is the best "
            "{made} in the world|Thank you, {A}].\" [They were both happy.|And they enjoyed it together.|A gift "
            "made by hand is made with love.]",
    ],
    [
        ("What did {A} make?", "{A} made {a made}."),
        ("Who was the {made} for?", "The {made} was for {B}."),
        ("Where did {A} get {part1}?", "{A} got {part1} from {shop1}."),
        ("Where did {part3} come from?", "It came from {shop3}."),
        ("What did {A} need?", "{A} needed {part1}, {part2} and {part3}."),
    ],
    setup_make,
)


def setup_journey(w, s):
    s["errand"] = w.pick(
        [
            "see the sea", "find a blue flower", "visit {his} grandmother", "see the big castle",
            "bring a letter to the king", "find the end of the rainbow", "hear the great bell",
            "buy a present for {his} mother", "see the lights of the town", "look for treasure",
        ]
    )
    s["errand"] = w.say(s["errand"], s)
    obstacles = [
        ("a wide river", "There was no bridge", "carried {him} across on a raft", "by raft"),
        (
            "a dark forest",
            "It was so dark that {he} could not see the path",
            "lit a lamp and led the way",
            "with a lamp",
        ),
        ("a high wall", "There was no gate", "brought a long ladder", "with a ladder"),
        ("a deep valley", "The way down was steep", "threw {him} a strong rope", "with a rope"),
        (
            "a fork in the road", "One way went left and one way went right",
            "knew the right way and pointed to the left", "by showing the way",
        ),
        (
            "a thick fog", "{He} could not see {his} own feet", "rang a small bell so that {he} could follow",
            "with a bell",
        ),
    ]
    o = w.pick(obstacles)
    s["obstacle"], s["why"], s["help"], s["means"] = o[0], w.say(o[1], s), w.say(o[2], s), o[3]


plot(
    "journey",
    "a journey|an adventure|a long way|a trip",
    [
        TIMES + ", {A} [said, \"I want to {errand}.\"|wanted to {errand}.|decided to {errand}.] {He} [put {a "
            "food} in {his} bag|packed {a food} and a bottle of water|took {his} {obj}] and [set off|started "
            "early in the morning].",
        "{He} walked past {place} and over {place2}[. {sky}|]. [Birds were singing in the trees.|{His} feet began "
            "to hurt, but {he} went on.|The road was long.]",
        "Then {he} came to {obstacle}. {why}. [\"What shall I do now?\" {he} asked.|{A} sat down on a stone and "
            "thought.|{He} almost turned back.]",
        "Just then {Cmeet} came by. \"[Where are you going|You look tired]?\" asked {C}. \"I want to {errand},\" "
            "said {A}. {C} smiled and {help}. \"[Good luck|Safe travels]!\" said {C}.",
        "[In the evening|After two days|At last], {A} [arrived|reached the end of the road]. [It was even better "
            "than in {his} dreams.|{He} was tired, but {his} heart was light.|{He} stood there for a long time "
            "and smiled.]",
        "[When {A} came home, {he} told everybody about it.|On the way back, {A} gave {C} {gift} to say thank "
            "you.|Since then {A} knew that the world is full of kind people.]",
    ],
    [
        ("What did {A} want to do?", "{A} wanted to {errand}."),
        ("What was in the way?", "{obstacle} was in the way."),
        ("Who helped {A}?", "{C} helped {A}."),
        ("How did {C} help?", "{C} helped {means}."),
    ],
    setup_journey,
)

plot(
    "race",
    "a race|winning|a contest",
    [
        TIMES + ", {A} met {Bmeet}. \"I am the fastest in the land,\" said {B}. \"[I do not think so|Are you "
            "sure]?\" said {A}. \"Let us have a race [to {place}|from here to {place}]!\"",
        "[{C} gave the sign|They counted to three]. \"One, two, three, go!\" {B} [ran off|was in front at once]. "
            "{A} was [a little behind|far behind], but {he} did not give up.",
        "[Halfway|In the middle of the way|Near the end], {B} [tripped over a root|slipped on a wet stone|fell "
            "into a ditch]. \"[Ouch|Oh no]!\" {bhe} cried. Now {A} could win the race.",
        "But {A} stopped. {He} [gave {B} a hand|helped {B} up]. \"[Does it hurt|Are you all right]?\" {he} asked. "
            "\"[You could have won!|Why did you stop?]\" said {B}. \"[A friend is more important than a race|It "
            "is no fun to win like that],\" said {A}.",
        "They [walked|went] the rest of the way together and crossed the line [side by side|at the same time]. "
            "[Everybody cheered.|So both of them won.] [And they shared {a food}.|{B} never said again that {bhe} "
            "was the fastest.|]",
    ],
    [
        ("Who fell?", "{B} fell."),
        ("Why did {A} stop?", "{A} stopped to help {B}."),
        ("Who won the race?", "Both of them won."),
        ("Where was the end of the race?", "The end of the race was at {place}."),
        ("Who said that {Bhe} was the fastest?", None),
    ],
)


def setup_fear(w, s):
    s["fear"], s["sound"], s["truth"] = w.pick(
        [
            ("the dark", "In the dark, {he} heard a strange noise", "it was only the wind in the trees"),
            ("thunder", "There was a flash, and then a loud boom", "thunder is only a noise"),
            ("deep water", "The lake was deep and black", "the water could carry {him}"),
            ("high places", "The hill was so high that the houses looked like toys", "the view was beautiful"),
            ("big dogs", "A big dog came down the road", "the dog only wanted to play"),
            ("the cellar", "Down in the cellar, something moved", "it was only a mouse"),
            ("spiders", "A spider sat on the wall", "the spider was more afraid than {he} was"),
            ("the old house", "In the old house, a door opened slowly", "an old cat lived there"),
        ]
    )
    s["sound"], s["truth"] = w.say(s["sound"], s), w.say(s["truth"], s)


plot(
    "fear",
    "being brave|being afraid|courage|the dark",
    [
        "{A} was not afraid of [rain|snow|bees|wind], but {he} was afraid of {fear}. [Nobody knew about it.|{He} "
            "did not like to talk about it.|The others laughed at {him}.]",
        TIMES + ", {A} was [on the way home|alone|out for a walk]. {sound}. {He} [wanted to run away|closed {his} "
            "eyes|could not move]. {His} heart beat fast.",
        "Then {he} [felt a hand on {his} arm|heard a friendly voice]. It was {B}. \"[Are you afraid|Is something "
            "wrong]?\" asked {B}. \"[Yes|A little],\" [whispered|said] {A}. \"[Everybody is afraid of something|I "
            "was afraid too, once],\" said {B}. \"[Let us go together|Take my hand and look].\"",
        "They went [step by step|slowly]. {A} [opened {his} eyes|took a deep breath]. And then {he} saw that "
            "{truth}. {A} [began to laugh|had to smile].",
        "\"[You are very brave|That was brave],\" said {B}. \"[But I was afraid|I was shaking],\" said {A}. "
            "\"[Brave means that you are afraid and do it anyway|You did it anyway, and that is what counts],\" "
            "said {B}. [Since then {A} was not afraid of {fear} any more.|That night {A} slept well.]",
    ],
    [
        ("What was {A} afraid of?", "{A} was afraid of {fear}."),
        ("Who helped {A}?", "{B} helped {A}."),
        ("What did {A} see in the end?", "{A} saw that {truth}."),
        ("Was {A} brave?", "Yes, {A} was brave."),
    ],
    setup_fear,
)

plot(
    "truth",
    "telling the truth|a broken thing|saying sorry|honesty",
    [
        TIMES + ", {A} was playing [with a ball|inside the house] when it happened. [Crash!|There was a loud "
            "crash.] The {colour} [vase|lamp|plate|jug|bowl] of {C} [fell down and broke|was broken].",
        "{A} [was frightened|did not know what to do]. {He} hid the pieces {spot}. When {C} came home, {che} "
            "asked, \"[Who did this|What happened here]?\" \"[It was not me|The wind did it|I do not know],\" "
            "said {A}.",
        "[That night {A} could not sleep.|{A} did not feel well.] [The lie lay in {his} stomach like a "
            "stone.|{He} thought about it all the time.] {He} went to {B} and told {bhim} everything. \"[You know "
            "what you have to do|Tell the truth],\" said {B}.",
        "[The next morning|In the morning], {A} went to {C}. \"I broke it,\" {he} said. \"I am [very |so ]sorry "
            "that I lied.\" {C} [was quiet for a moment|looked at {him} for a long time]. \"[I am glad that you "
            "told me|It takes courage to tell the truth],\" {che} said.",
        "Together they [glued the pieces|made a new one]. [It was not as good as before, but that did not "
            "matter.|It looked even nicer than before.] [{A} felt light again.|And {A} never told a lie "
            "again.|And {A} slept well that night.]",
    ],
    [
        ("Who broke it?", "{A} broke it."),
        ("Where did {A} hide the pieces?", "{A} hid the pieces {spot}."),
        ("What did {B} say?", "{B} said that {A} should tell the truth."),
        ("Did {A} tell the truth in the end?", "Yes, {A} told the truth in the end."),
    ],
)


def setup_grow(w, s):
    s["plant"], s["fruit"] = w.pick(
        [
            ("apple tree", "red apples"), ("sunflower", "a flower as big as a plate"),
            ("pumpkin plant", "a huge pumpkin"), ("rose bush", "a hundred roses"),
            ("bean plant", "long green beans"), ("cherry tree", "sweet cherries"), ("berry bush", "blue berries"),
            ("pear tree", "golden pears"),
        ]
    )


plot(
    "grow",
    "a garden|a seed|growing a plant|patience|spring",
    [
        "[One spring|In spring|One day in spring], {A} found a [small|tiny|strange] seed {spot}. \"What will it "
            "be?\" {he} [asked|wondered]. {He} [dug a hole|made a small hole in the ground] and put the seed in.",
        "Every [day|morning] {A} brought water. [But nothing happened.|Day after day nothing happened.] {B} came "
            "and [laughed|looked]. \"[Nothing will grow there|You are wasting your time],\" said {B}. \"[Wait and "
            "see|Good things need time],\" said {A}.",
        "Then it rained for [two|three|four|five] days. [And after the rain|When the sun came back], there was a "
            "small green leaf. \"Look!\" cried {A}. {He} danced [around it|with joy].",
        "The plant grew and grew. [In summer it was taller than {A}.|Soon it was as high as the fence.] It was {a "
            "plant}! And in autumn, it had {fruit}.",
        "{A} [invited everybody|called all the neighbours], also {B}. \"[I was wrong|You were right to wait],\" "
            "said {B}. \"[This is for you too|Come, there is enough for all],\" said {A}. [And {he} kept one seed "
            "for the next year.|It was a wonderful day.]",
    ],
    [
        ("What did {A} find?", "{A} found a seed."),
        ("Where was the seed?", "The seed was {spot}."),
        ("What did the seed become?", "The seed became {a plant}."),
        ("Who laughed or did not believe {A}?", "{B} did not believe {A}."),
        ("What did {A} bring every day?", "{A} brought water every day."),
    ],
    setup_grow,
)


def setup_trade(w, s):
    s["t1"], s["t2"], s["t3"], s["t4"] = w.some(
        [
            "{a thing}", "a jar of honey", "a warm hat", "a bag of flour", "a wooden flute", "a basket of eggs",
            "a silver spoon", "a soft pillow", "a pair of boots", "a big cheese",
        ],
        4,
    )
    for k in ("t1", "t2", "t3", "t4"):
        s[k] = w.say(s[k], s)


plot(
    "trade",
    "trading things|the market|swapping",
    [
        "{A} had {t1}, but {he} wanted {t4}. [So {he} went to the market.|\"I will trade,\" {he} said.|{He} had "
            "no money.]",
        "First {he} met {Bmeet}. {B} had {t2}. \"I need {t1},\" said {B}. \"Will you trade?\" \"[Yes|Why not]!\" "
            "said {A}. Now {A} had {t2}.",
        "Then {he} met {Cmeet}. {C} had {t3}. \"[I have always wanted|I am looking for] {t2},\" said {C}. So they "
            "traded, and now {A} had {t3}.",
        "[At the end of the road|At last|In the evening], {he} saw an old woman with {t4}. \"Would you like to "
            "have {t3}?\" asked {A}. \"[Oh yes|That is just what I need],\" said the old woman. So {A} got {t4} "
            "[at last|in the end].",
        "{A} [walked home with a smile|was very pleased]. [Everybody had what they needed.|{He} had started with "
            "{t1}, and now {he} had {t4}.|A good trade makes everybody happy.]",
    ],
    [
        ("What did {A} have at the start?", "{A} had {t1} at the start."),
        ("What did {A} want?", "{A} wanted {t4}."),
        ("What did {A} have at the end?", "{A} had {t4} at the end."),
        ("What did {B} give to {A}?", "{B} gave {t2} to {A}."),
        ("What did {C} get?", "{C} got {t2}."),
    ],
    setup_trade,
)
