"""Build the dynet_lite mini-treebank from its hand-written source.

The source files (``source/*.txt``) hold one sentence per line in a compact bracket notation that is
described in ``README.md``.  This script reads them and writes six files next to itself::

    train.conllu  dev.conllu   dependency trees (CoNLL-U)
    train.ptb     dev.ptb      constituent trees, one per line
    train.sst     dev.sst      binary trees with a sentiment class 0..4 at every node

Steps, for each sentence: parse the notation, give every word a part of speech, complete the bracketing
(implied phrases), find lemmas, turn the tree into dependencies by head rules, make the tree binary and
compose the sentiment of each node from its two children.

Usage::

    python data/treebank/build.py              # rewrite the files
    python data/treebank/build.py --out DIR    # write them somewhere else
    python data/treebank/build.py --check      # exit with 1 if the files on disk are out of date
    python data/treebank/build.py --counts     # print the counts that the README shows

Only the standard library is needed.
"""

import argparse
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "source"
DEV_EVERY = 7  # one sentence in seven goes to the dev part
DEV_OFFSET = 3

# ---------------------------------------------------------------------------------------------------
# Word tables
# ---------------------------------------------------------------------------------------------------


def word_set(text):
    """The set of the words in ``text``."""
    return set(text.split())


CODES = {
    "n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV", "p": "PROPN", "o": "PRON", "d": "DET", "i": "INTJ",
    "x": "AUX", "c": "CCONJ", "s": "SCONJ", "t": "PART", "m": "NUM", "y": "SYM", "k": "ADP", "e": "PRON",
}  # fmt: skip

PUNCT = {".", ",", "?", "!", ";", ":", '"', "-", "..."}

BE = {
    "be": "be", "am": "be", "is": "be", "are": "be", "was": "be", "were": "be", "been": "be", "being": "be",
    "'m": "be", "'re": "be", "'s": "be",
}  # fmt: skip
HAVE_DO = {
    "have": "have", "has": "have", "had": "have", "having": "have", "'ve": "have",
    "do": "do", "does": "do", "did": "do",
}  # fmt: skip
MODAL = {
    "can": "can", "ca": "can", "could": "could", "will": "will", "'ll": "will", "wo": "will",
    "would": "would", "'d": "would", "shall": "shall", "should": "should", "may": "may", "might": "might",
    "must": "must",
}  # fmt: skip

# Words with one part of speech wherever they are written without a code.
FIXED_TAGS = {
    "DET": "the a an every each some any no all both another either neither",
    "PRON": "i you he she it we they me him her us them my your his its our their mine yours hers ours "
    "theirs myself yourself himself herself itself ourselves themselves who whom whose something nothing "
    "everything anything everyone someone nobody anyone everybody somebody",
    "CCONJ": "and or but nor",
    "ADV": "very too so quite never always often really just only also again still now then here there soon "
    "already almost even ever maybe perhaps how where why instead once twice rather hardly however as yet "
    "together away",
    "PART": "not n't to",
    "ADJ": "many few several other own such same",
    "NUM": "one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty "
    "sixty ninety hundred thousand million",
    "INTJ": "yes oh wow hello hi please hey ah ugh",
    "SYM": "$ %",
}
CLOSED = {word: tag for tag, words in FIXED_TAGS.items() for word in words.split()}
DEMONSTRATIVE = {"this", "that", "these", "those", "what", "which"}
QUANTITY = {"more", "most", "less", "much"}
SUBORDINATORS = word_set(
    "that because if when while although though whether since before after until as than unless so once"
)
WH_PRON = {"who", "whom", "what", "which"}
WH_ADV = {"how", "where", "why"}

# Verbs that lose their last letter before -ed and -ing.
E_VERBS = word_set(
    "apologise arrive bake change charge close deserve hope leave live love move notice promise "
    "refuse save smile surprise taste"
)

# Lemmas that the rules below do not find.
IRREGULAR_PRON = {
    "me": "I", "i": "I", "him": "he", "us": "we", "them": "they", "these": "this", "those": "that",
    "whom": "who",
}  # fmt: skip


def load_pairs(path):
    """Read ``lemmas.txt``: lines ``TAG lemma form form ...``; return {(form, tag): lemma}."""
    table = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].split()
        if line:
            tag, lemma, *forms = line
            for form in forms:
                table[form, tag] = lemma
    return table


def load_sentiment(path):
    """Read ``sentiment.txt``: lines ``CLASS: word word/code ...``; return {(word, tag or None): class}.

    The classes are 0, 1, 3, 4 and also the three function names ``negate``, ``strong`` and ``weak``.
    """
    table = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, words = line.split(":")
            for word in words.split():
                word, _, code = word.partition("/")
                table[word, CODES[code] if code else None] = name
    return table


# ---------------------------------------------------------------------------------------------------
# The source notation
# ---------------------------------------------------------------------------------------------------


class Node:
    """A phrase (``label`` and ``children``) or a word (``form`` and ``tag``)."""

    def __init__(self, label=None, children=None, form=None, tag=None, mark=(False, None, None)):
        self.label = label
        self.children = children or []
        self.form = form
        self.tag = tag
        self.star, self.rel, self.cls = mark  # head mark, given relation, given sentiment class
        self.lemma = None
        self.index = None  # 1-based place in the sentence (words only)
        self.there = False  # existential "there"

    @property
    def is_word(self):
        return self.form is not None

    @property
    def kind(self):
        """Part of speech for a word, phrase label for a phrase."""
        return self.tag if self.is_word else self.label

    def __str__(self):
        return f"{self.label or self.tag} {' '.join(word.form for word in self.words())!r}"

    def words(self):
        if self.is_word:
            return [self]
        return [word for child in self.children for word in child.words()]


MARKS = r"(?P<star>\*)?(?:=(?P<rel>[a-z:]+))?(?:#(?P<cls>[0-4]))?$"
PHRASE_RE = re.compile(r"(?P<name>[A-Z]+)" + MARKS)
WORD_RE = re.compile(r"(?P<name>.+?)(?:/(?P<code>[a-z]))?" + MARKS)


def parse(line):
    """Parse one source line into a tree of ``Node``s."""
    tokens = line.replace("(", " ( ").replace(")", " ) ").split()
    place = 0

    def marks(match):
        cls = match["cls"]
        return bool(match["star"]), match["rel"], None if cls is None else int(cls)

    def item():
        nonlocal place
        token = tokens[place]
        place += 1
        if token == ")":
            raise ValueError("bracket closed too early: " + line)
        if token != "(":
            match = WORD_RE.match(token)
            tag = CODES[match["code"]] if match["code"] else None
            node = Node(form=match["name"], tag=tag, mark=marks(match))
            node.there = match["code"] == "e"
            return node
        match = PHRASE_RE.match(tokens[place])
        if not match:
            raise ValueError(f"bad phrase label {tokens[place]!r}: {line}")
        place += 1
        children = []
        while place < len(tokens) and tokens[place] != ")":
            children.append(item())
        if place == len(tokens):
            raise ValueError("bracket not closed: " + line)
        place += 1
        label, mark = match["name"], marks(match)
        if label == "SV":  # a clause without a subject: (S (VP ...))
            return Node("S", [Node("VP", children)], mark=mark)
        if label == "NPT":  # a noun phrase of time
            return Node("NP", children, mark=(mark[0], mark[1] or "obl:tmod", mark[2]))
        return Node(label, children, mark=mark)

    tree = item()
    if place != len(tokens):
        raise ValueError("text after the last bracket: " + line)
    return tree


# ---------------------------------------------------------------------------------------------------
# Parts of speech for the words that carry no code
# ---------------------------------------------------------------------------------------------------


def assign_tags(phrase):
    """Give every word of ``phrase`` its part of speech; the phrase is as written in the source."""
    kids = phrase.children
    for place in range(len(kids) - 1, -1, -1):  # right to left: a word may look at its right neighbour
        child = kids[place]
        if not child.is_word:
            assign_tags(child)
        elif child.tag is None:
            child.tag = closed_tag(child.form.lower(), phrase, place)
        if child.is_word and child.tag is None:
            raise ValueError(f"no part of speech for {child.form!r} in {phrase}")


def closed_tag(word, phrase, place):
    kids = phrase.children
    after = kids[place + 1] if place + 1 < len(kids) else None
    after_tag = after.tag if after is not None and after.is_word else None
    if word in PUNCT:
        return "PUNCT"
    if word.replace(",", "").replace(".", "").replace(":", "").isdigit():
        return "NUM"
    if phrase.label in ("PRT", "INTJ"):
        return "ADP" if phrase.label == "PRT" else "INTJ"
    if phrase.label == "SBAR" and place == 0 and word in SUBORDINATORS:
        return "SCONJ"
    if phrase.label == "PP" and place == 0:
        return "SCONJ" if kids[-1].label == "S" else "ADP"
    if word in DEMONSTRATIVE:
        noun_next = after_tag in ("NOUN", "PROPN", "ADJ", "NUM") or (after and after.label in ("NML", "ADJP"))
        return "DET" if noun_next and phrase.label in ("NP", "WHNP", "PP") else "PRON"
    if word in QUANTITY:
        return "ADJ" if after_tag == "NOUN" and phrase.label in ("NP", "WHNP", "PP") else "ADV"
    if word == "'s" and phrase.label == "NP" and after is None:
        return "PART"
    if word in BE or word in MODAL:
        return "AUX"
    if word in HAVE_DO:
        verb_later = any(k.kind in ("VERB", "AUX", "VP") for k in kids[place + 1 :])
        return "AUX" if verb_later or phrase.label in ("SQ", "SBARQ") else "VERB"
    return CLOSED.get(word)


# ---------------------------------------------------------------------------------------------------
# Implied phrases
# ---------------------------------------------------------------------------------------------------

NOMINAL = ("NOUN", "PROPN", "PRON", "NUM", "SYM")
WRAP = {"NOUN": "NP", "PROPN": "NP", "PRON": "NP", "NUM": "NP", "DET": "NP", "ADV": "ADVP", "ADJ": "ADJP",
        "INTJ": "INTJ"}  # fmt: skip
CLAUSES = ("S", "SQ", "SBARQ", "SINV", "SBAR", "VP", "FRAG")


def coordinated(phrase):
    """True for a phrase whose children are conjuncts: it has a conjunction that is not its first child."""
    kids = [k for k in phrase.children if k.kind != "PUNCT"]
    return any(k.kind == "CCONJ" for k in kids[1:])


def wrap(label, child):
    """Put the phrase ``label`` over ``child`` and move the relation and the head mark up to it."""
    node = Node(label, [child], mark=(child.star, child.rel, None))
    child.star, child.rel = False, None
    return node


# Adverbs that go with the adjective or adverb after them.
DEGREE = word_set(
    "very too so quite really simply absolutely far rather extremely almost completely totally more most "
    "less slightly even hardly truly highly nearly surprisingly much as deeply"
)


def is_degree(node):
    return node.tag == "ADV" and node.form.lower() in DEGREE


def group(phrase):
    """Make the phrases that the notation implies by word order alone."""
    kids = phrase.children
    if phrase.label == "PP" and not any(k.label == "PP" for k in kids[:1]):
        first = next(i for i, k in enumerate(kids) if k.tag in ("ADP", "SCONJ")) + 1
        if len(kids) - first > 1:
            kids[first:] = [Node("NP", kids[first:])]
        return
    if phrase.label in ("S", "VP") and coordinated(phrase):
        group_clauses(phrase)
    if phrase.label in ("NP", "NML", "S", "VP", "SQ", "FRAG", "SINV"):
        group_adjectives(phrase)
    if phrase.label == "NP":
        group_numbers(phrase)
        if coordinated(phrase):
            group_nouns(phrase)


def group_clauses(phrase):
    """(S a b , and (S c d) .) -> (S (S a b) , and (S c d) .); the same for VP."""
    kids = phrase.children
    place = next(i for i, k in enumerate(kids) if i > 0 and k.kind == "CCONJ")
    after = next((k.label for k in kids[place + 1 :] if not k.is_word and k.label != "ADVP"), None)
    end = place - 1 if kids[place - 1].tag == "PUNCT" else place
    if after == phrase.label and kids[0].label != after:
        start = 1 if kids[0].kind == "CCONJ" else 0
        kids[start:end] = [Node(after, kids[start:end])]
    elif phrase.label == "S" and after == "VP":
        start = next(i for i, k in enumerate(kids) if k.label == "VP")
        stop = max(i for i, k in enumerate(kids) if k.label == "VP") + 1
        if stop - start > 1:
            kids[start:stop] = [Node("VP", kids[start:stop])]


def group_adjectives(phrase):
    """Put a run such as "very good" or "sad but beautiful" into a phrase of its own."""
    kids = phrase.children
    place = 0
    while place < len(kids):
        end = adjective_run(kids, place)
        if end is None:
            place += 1
            continue
        run = kids[place:end]
        follow = kids[end].children[0].form if end < len(kids) and kids[end].label == "PP" else None
        if phrase.label == "VP" and follow in ("of", "to"):  # full of life, close to the sea
            run.append(kids[end])
            end += 1
        if len(run) > 1:
            kids[place:end] = [adjective_phrase(run)]
        place += 1


def adjective_run(kids, place):
    """The end of the run of adjectives (or degree word and adverb) that starts at ``place``, or None."""
    end = after_degree(kids, place)
    if end is None:
        return None
    if kids[end - 1].tag == "ADV":
        return end
    stop = end
    while stop + 1 < len(kids) and kids[stop].kind in ("PUNCT", "CCONJ"):
        start = stop + 1
        if kids[start].kind == "CCONJ":
            start += 1
        following = after_degree(kids, start) if start < len(kids) else None
        if following is None or kids[following - 1].tag != "ADJ":
            break
        joined = any(k.kind == "CCONJ" for k in kids[stop:start])
        stop = following
        if joined:
            return stop
    return end


def after_degree(kids, place):
    """The place after (degree word)* + adjective, or after (degree word)+ + adverb; None if there is none."""
    end = place
    while end < len(kids) and is_degree(kids[end]):
        end += 1
    if end < len(kids) and kids[end].tag == "ADJ":
        return end + 1
    if end < len(kids) and end > place and kids[end].tag == "ADV":
        return end + 1
    return place + 2 if end - place > 1 else None


def adjective_phrase(run):
    """Make the phrase for a run found by ``adjective_run``."""
    if any(k.kind == "CCONJ" for k in run):
        parts, part = [], []
        for kid in [*run, None]:
            if kid is None or kid.kind in ("PUNCT", "CCONJ"):
                if part:
                    parts.append(part[0] if len(part) == 1 else adjective_phrase(part))
                part = []
                if kid is not None:
                    parts.append(kid)
            else:
                part.append(kid)
        return Node("ADJP", parts)
    adjective = next((i for i, k in enumerate(run) if k.tag == "ADJ"), None)
    if adjective is None:
        return Node("ADVP", run)
    if adjective > 1:  # far too long
        run = [Node("ADVP", run[:adjective]), *run[adjective:]]
    return Node("ADJP", run)


def group_numbers(phrase):
    """Put a number of several words into a phrase: (QP two hundred)."""
    kids = phrase.children
    numbers = [i for i, k in enumerate(kids) if k.tag == "NUM"]
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        kids[numbers[0] : numbers[-1] + 1] = [Node("QP", [kids[i] for i in numbers])]


def group_nouns(phrase):
    """(NP two eggs , butter and salt) -> (NP (NP two eggs) , (NP butter) and (NP salt))."""
    parts, part = [], []
    for kid in [*phrase.children, None]:
        if kid is None or kid.kind in ("PUNCT", "CCONJ"):
            parts += [part] if part else []
            parts += [kid] if kid is not None else []
            part = []
        else:
            part.append(kid)
    segments = [p for p in parts if isinstance(p, list)]
    nominal = all(any(k.kind in (*NOMINAL, "NP", "NML", "DET") for k in seg) for seg in segments)
    if not nominal or all(len(seg) == 1 for seg in segments):
        return
    phrase.children = []
    for part in parts:
        if isinstance(part, list):
            part = part[0] if len(part) == 1 and not part[0].is_word else Node("NP", part)
        phrase.children.append(part)


def complete(phrase):
    """Add the phrases that the notation leaves out."""
    group(phrase)
    for child in phrase.children:
        if not child.is_word:
            complete(child)
    kids = phrase.children
    bad = [k.form for i, k in enumerate(kids[:-1]) if k.tag == "DET" and kids[i + 1].is_word]
    if phrase.label in CLAUSES and bad and kids[-1].form != bad[-1]:
        raise ValueError(f"determiner {bad} outside a noun phrase")
    if phrase.label in (*CLAUSES, "PP"):
        bare_conjuncts = coordinated(phrase)
        for place, child in enumerate(kids):
            if not child.is_word:
                continue
            word, question = child.form.lower(), phrase.label in ("SBAR", "SBARQ")
            relative = phrase.label == "SBAR" and place == 0 and word == "that" and child.tag == "PRON"
            if relative or (question and word in WH_PRON):
                kids[place] = wrap("WHNP", child)
            elif question and word in WH_ADV | {"when"} and child.tag == "ADV":
                kids[place] = wrap("WHADVP", child)
            elif child.tag in WRAP and not (bare_conjuncts and phrase.label == "VP"):
                kids[place] = wrap(WRAP[child.tag], child)
    if phrase.label == "SBAR" and not coordinated(phrase):
        first = 1 if kids[0].kind in ("SCONJ", "WHNP", "WHADVP", "WHPP") else 0
        if len(kids) > first and not (len(kids) == first + 1 and kids[first].label == "S"):
            kids[first:] = [Node("S", kids[first:])]
    if phrase.label == "VP" and not coordinated(phrase):
        nest_verbs(phrase)
    if phrase.label == "NP" and not coordinated(phrase):
        nest_base(phrase)


def nest_verbs(phrase):
    """(VP will have gone home) -> (VP will (VP have (VP gone home)))."""
    kids = phrase.children
    helper = next((i for i, k in enumerate(kids) if is_helper(k)), None)
    if helper is None:
        return
    verb = next((i for i in range(helper + 1, len(kids)) if kids[i].tag in ("AUX", "VERB")), None)
    if verb is not None:
        inner = Node("VP", kids[verb:])
        nest_verbs(inner)
        kids[verb:] = [inner]


def is_helper(node):
    return node.tag == "AUX" or (node.tag == "PART" and node.form.lower() == "to")


def nest_base(phrase):
    """(NP the cat (PP on the mat)) -> (NP (NP the cat) (PP on the mat))."""
    kids = phrase.children
    core = [i for i, k in enumerate(kids) if k.label == "NML" or (k.is_word and k.tag != "PUNCT")]
    last = core[-1] if core else len(kids)
    if all(k.tag == "PUNCT" for k in kids[last + 1 :]):
        return
    base = Node("NP", kids[: last + 1])
    kids[: last + 1] = [base]


def finish_question(phrase):
    """(SBARQ (WHNP what) is (NP it) ?) -> (SBARQ (WHNP what) (SQ is (NP it)) ?).

    The head rules want the flat form, so this comes after the dependencies.
    """
    for child in phrase.children:
        if not child.is_word:
            finish_question(child)
    kids = phrase.children
    if phrase.label == "SBARQ" and any(k.tag == "AUX" for k in kids):
        first = next(i for i, k in enumerate(kids) if k.tag == "AUX")
        last = len(kids)
        while kids[last - 1].tag == "PUNCT":
            last -= 1
        kids[first:last] = [Node("SQ", kids[first:last])]


# ---------------------------------------------------------------------------------------------------
# Lemmas
# ---------------------------------------------------------------------------------------------------


def lemma_of(word, table):
    form, tag = word.form, word.tag
    if tag == "PROPN":
        return table.get((form, tag), form)
    low = form.lower()
    if (low, tag) in table:
        return table[low, tag]
    if tag == "AUX":
        return {**BE, **HAVE_DO, **MODAL, "get": "get", "got": "get"}[low]
    if tag == "PRON":
        return IRREGULAR_PRON.get(low, low)
    if low == "n't":
        return "not"
    if tag == "DET":
        return {"an": "a", "these": "this", "those": "that"}.get(low, low)
    if tag == "VERB":
        return verb_lemma(low)
    if tag == "NOUN":
        return noun_lemma(low)
    return low


def verb_lemma(form):
    if form in HAVE_DO or form in BE:
        return {**HAVE_DO, **BE}[form]
    if form.endswith("ies") and len(form) > 4:
        return form[:-3] + "y"
    if re.search(r"(s|x|ch|sh|z|o)es$", form):
        return form[:-2]
    if form.endswith("s") and not form.endswith(("ss", "us")):
        return form[:-1]
    if form.endswith("ied") and len(form) > 4:
        return form[:-3] + "y"
    for ending in ("ed", "ing"):
        if form.endswith(ending) and len(form) > len(ending) + 2:
            stem = form[: -len(ending)]
            if re.search(r"([bdgmnprt])\1$", stem):
                return stem[:-1]
            return stem + "e" if stem + "e" in E_VERBS else stem
    return form


def noun_lemma(form):
    if form.endswith("ies") and len(form) > 4:
        return form[:-3] + "y"
    if re.search(r"(ss|x|ch|sh|to)es$", form):
        return form[:-2]
    if form.endswith("s") and not form.endswith(("ss", "us", "is")):
        return form[:-1]
    return form


# ---------------------------------------------------------------------------------------------------
# Dependencies
# ---------------------------------------------------------------------------------------------------


def is_possessive(node):
    return node.label == "NP" and node.children[-1].tag == "PART"


def head_child(phrase):
    """Return the place of the child that holds the head of ``phrase``."""
    kids = phrase.children
    starred = [i for i, k in enumerate(kids) if k.star]
    if starred:
        return starred[0]

    def first(*kinds, ok=lambda k: True):
        for kind in kinds:
            for i, k in enumerate(kids):
                if k.kind == kind and ok(k):
                    return i
        return None

    found = None
    if coordinated(phrase):
        skip = ("CCONJ", "PUNCT", "SBAR", "INTJ") if phrase.label in ("S", "VP") else ("CCONJ", "PUNCT")
        return next(i for i, k in enumerate(kids) if k.kind not in skip and k.rel is None)
    if phrase.label in ("NP", "WHNP", "NML"):
        nominal = [i for i, k in enumerate(kids) if k.tag in NOMINAL and k.rel is None]
        nouns = [i for i in nominal if kids[i].tag in ("NOUN", "PROPN", "SYM")]
        found = nouns[-1] if nouns else nominal[-1] if nominal else None
        if found is None:
            found = first("NML", "NP", "WHNP", ok=lambda k: not is_possessive(k) and k.rel is None)
        if found is None:
            found = first("QP", "ADJ", "ADJP", "DET")
    elif phrase.label in ("PP", "WHPP"):
        found = len(kids) - 1
    elif phrase.label in ("VP", "SQ", "S", "SBARQ", "SINV", "SBAR", "FRAG"):
        found = first("VERB", "VP")
        if found is None and phrase.label != "VP":
            found = first("SQ", "S", ok=lambda k: k.rel is None)
        if found is None and phrase.label == "SQ":  # (SQ is (NP it) (ADJP good)): the subject is the first NP
            parts = ("NP", "ADJP", "PP", "ADVP")
            preds = [i for i, k in enumerate(kids) if k.kind in parts and k.rel is None]
            found = preds[1] if len(preds) > 1 else None
        if found is None:
            found = first("ADJP", "NP", "PP", "ADVP", "SBAR", "S", ok=lambda k: k.rel is None)
        if found is None:
            found = first("AUX", "INTJ", "PART")
    elif phrase.label in ("ADJP", "WHADJP"):
        adjectives = [i for i, k in enumerate(kids) if k.tag in ("ADJ", "NUM", "VERB")]
        found = adjectives[-1] if adjectives else first("ADJP")
    elif phrase.label in ("ADVP", "WHADVP"):
        adverbs = [i for i, k in enumerate(kids) if k.tag in ("ADV", "ADP", "ADJ")]
        found = adverbs[-1] if adverbs else first("ADVP", "NOUN")
    elif phrase.label == "QP":
        found = max(i for i, k in enumerate(kids) if k.tag == "NUM")
    elif phrase.label in ("PRT", "INTJ", "X"):
        found = 0
    if found is None:
        raise ValueError(f"no head for {phrase}")
    return found


def relation(phrase, place, head):
    """The relation of child ``place`` to the head of ``phrase`` where the source names none."""
    child, kids = phrase.children[place], phrase.children
    kind, label = child.kind, phrase.label
    low = child.form.lower() if child.is_word else ""
    if kind == "PUNCT":
        return "punct"
    if kind == "CCONJ":
        return "cc"
    if kind == "INTJ":
        return "discourse"
    if kind == "SCONJ":
        return "mark"
    if kind == "ADP":
        return "case" if label in ("PP", "WHPP") else "advmod"
    if kind == "PART":
        return "mark" if low == "to" else "case" if low in ("'s", "'") else "advmod"
    if kind == "AUX":
        return aux_relation(child, kids[head])
    if kind in ("ADV", "ADVP", "WHADVP"):
        return "advmod"
    if kind == "PRT":
        return "compound:prt"
    if label in ("NP", "WHNP", "NML", "QP"):
        return noun_relation(phrase, place, head)
    if label in ("ADJP", "ADVP", "WHADJP", "WHADVP"):
        if kind == "SBAR":
            return "ccomp" if clause_type(child) in ("that", "none") and label == "ADJP" else "advcl"
        return {"PP": pp_relation(child, "obl"), "S": "xcomp", "NP": "obl:npmod", "ADJ": "amod", "DET": "det",
                "NOUN": "obl:npmod", "NUM": "nummod"}[kind]  # fmt: skip
    # Clauses and verb phrases.
    if kind in ("PP", "WHPP"):
        return pp_relation(child, "obl")
    if kind in ("NP", "WHNP"):
        return argument_relation(phrase, place, head)
    if kind == "ADJP":
        return "xcomp" if label == "VP" else "advcl"
    if kind == "SBAR":
        if label == "VP" and clause_type(child) in ("wh", "that", "none"):
            return "ccomp"
        return "advcl"
    if kind == "S":
        if kids[head].kind == "S":
            return "parataxis"
        if any(k.kind in ("NP", "SBAR") for k in child.children) and label != "VP":
            return "ccomp"
        return "xcomp" if label == "VP" else "advcl"
    if kind in ("SQ", "SBARQ"):
        return "parataxis"
    raise ValueError(f"no relation for {kind} in {phrase}")


def clause_type(sbar):
    """What opens a clause: a wh-word, that/whether, nothing, or another conjunction."""
    first = sbar.children[0]
    if coordinated(sbar) and first.label == "SBAR":
        return clause_type(first)
    if first.kind in ("WHNP", "WHADVP", "WHPP"):
        return "wh"
    if first.kind == "SCONJ":
        return "that" if first.form.lower() in ("that", "whether") else "other"
    return "none"


def pp_relation(phrase, nominal):
    inner = phrase.children[-1]
    if phrase.children[0].label == "PP":  # coordinated
        inner = phrase.children[0].children[-1]
    if inner.label == "S":
        return "advcl" if nominal == "obl" else "acl"
    return nominal


def aux_relation(child, head):
    be = lower_be(child)
    if head.kind in ("VERB", "VP"):
        inner = head
        while not inner.is_word:  # the word that opens the verb phrase
            inner = next((k for k in inner.children if k.kind in ("AUX", "VERB", "VP")), None)
            if inner is None:
                return "cop" if be else "aux"
        if inner.tag == "VERB":
            passive = be or child.form.lower() in ("get", "got", "getting")
            return "aux:pass" if passive and not inner.form.endswith("ing") else "aux"
        return "aux"
    return "cop" if be else "aux"


def lower_be(word):
    return word.form.lower() in BE


def noun_relation(phrase, place, head):
    child, kids = phrase.children[place], phrase.children
    kind = child.kind
    if kind == "DET":
        nxt = kids[place + 1] if place + 1 < len(kids) else None
        return "det:predet" if nxt is not None and nxt.tag in ("DET",) else "det"
    if kind in ("ADJ", "ADJP", "WHADJP"):
        return "amod"
    if kind == "NUM":
        return "compound" if phrase.label == "QP" else "nummod"
    if kind == "QP":
        return "nummod"
    if kind == "PRON" and place < head:
        return "nmod:poss"
    if kind in ("NOUN", "PROPN", "NML") and place < head:
        return "compound"
    if kind == "NP":
        return "nmod:poss" if is_possessive(child) else "appos" if place > head else "compound"
    if kind in ("PP", "WHPP"):
        return pp_relation(child, "nmod")
    if kind == "SBAR":
        return "acl" if clause_type(child) in ("that", "other") else "acl:relcl"
    if kind in ("VP", "S"):
        return "acl"
    if kind == "VERB":
        return "amod"
    raise ValueError(f"no relation for {kind} in {phrase}")


def argument_relation(phrase, place, head):
    """Subject or object for a noun phrase in a clause or verb phrase."""
    child, kids = phrase.children[place], phrase.children
    if child.words()[0].there:
        return "expl"
    if phrase.label == "VP":
        for later in kids[place + 1 :]:
            if later.label == "NP" and later.rel is None:
                return "iobj"
            if later.label == "SBAR" and (later.rel or relation(phrase, kids.index(later), head)) == "ccomp":
                return "iobj"  # told me that ...
        return "obj"
    if phrase.label in ("SBAR", "SBARQ") and child.label == "WHNP":
        clause = kids[head]
        has_subject = any(k.label == "NP" and k.rel is None for k in clause.children)
        if clause.children and clause.children[0].label == "S":
            has_subject = any(k.label == "NP" for k in clause.children[0].children)
        return "obj" if has_subject else "nsubj"
    return "nsubj"


def dependencies(tree):
    """Return {word index: (head index, relation)} for a completed tree."""
    arcs = {}

    def attach(child, target, rel):
        arcs[visit(child)] = (target, rel)

    def visit(node):
        """Fill in the arcs inside ``node``; return the index of its head word."""
        if node.is_word:
            return node.index
        kids = node.children
        head = head_child(node)
        top = visit(kids[head])
        if coordinated(node):
            waiting = []  # commas and conjunctions go with the conjunct after them
            for place, child in enumerate(kids):
                if place == head:
                    continue
                if child.rel:
                    attach(child, top, child.rel)
                elif place < head:
                    attach(child, top, relation(node, place, head))
                elif child.kind in ("PUNCT", "CCONJ"):
                    waiting.append((child, relation(node, place, head)))
                elif child.kind == "ADVP" and kids[head].kind != "ADVP" and place + 1 < len(kids):
                    waiting.append((child, "advmod"))
                else:
                    attach(child, top, "conj")
                    index = next(i for i, arc in arcs.items() if arc == (top, "conj") and i in indices(child))
                    for word, rel in waiting:
                        attach(word, index, rel)
                    waiting = []
            for word, rel in waiting:
                attach(word, top, rel)
        else:
            for place, child in enumerate(kids):
                if place != head:
                    attach(child, top, child.rel or relation(node, place, head))
        return top

    def indices(node):
        return {word.index for word in node.words()}

    arcs[visit(tree)] = (0, "root")
    passive = {head for head, rel in arcs.values() if rel == "aux:pass"}
    for index, (head, rel) in arcs.items():
        if rel in ("nsubj", "csubj") and head in passive:
            arcs[index] = (head, rel + ":pass")
    return arcs


# ---------------------------------------------------------------------------------------------------
# Sentiment
# ---------------------------------------------------------------------------------------------------

VALUE = {"0": -2.0, "1": -1.0, "2": 0.0, "3": 1.0, "4": 2.0}


class Scored:
    """A node of the binary tree: a sentiment value in [-2, 2] and a role (how it acts on its sister)."""

    def __init__(self, value, role=None, parts=None, form=None):
        self.value, self.role, self.parts, self.form = value, role, parts, form

    def label(self):
        """0 very negative, 1 negative, 2 neutral, 3 positive, 4 very positive."""
        size = abs(round(self.value, 6))
        step = 2 if size >= 1.5 else 1 if size >= 0.5 else 0
        return 2 + step if self.value > 0 else 2 - step

    def line(self):
        if self.form is not None:
            return f"({self.label()} {self.form})"
        return f"({self.label()} {self.parts[0].line()} {self.parts[1].line()})"


def scored_word(word, table):
    found = None
    for name in (word.form.lower(), word.lemma.lower()):
        for key in ((name, word.tag), (name, None)):
            found = found or table.get(key)
    if found in VALUE:
        node = Scored(VALUE[found], form=word.form)
    else:
        node = Scored(0.0, role=found, form=word.form)
    if word.form.lower() in ("but", "yet") and word.tag == "CCONJ":
        node.role = "contrast"
    if word.form.lower() in ("although", "though"):
        node.role = "concede"
    if word.cls is not None:
        node.value = VALUE[str(word.cls)]
        node.role = None
    return node


def combine(left, right):
    """Compose two sisters into their parent."""
    a, b = left.value, right.value
    role = None
    if left.form in PUNCT:
        value, role = b, right.role
    elif right.form in PUNCT:
        value, role = a, left.role
    elif left.role == "negate":
        value = -0.75 * b if b > 0 else -0.5 * b
        role = "negate" if right.role in ("weak", "strong") else None
    elif left.role == "strong":
        value, role = b * 1.6, right.role
    elif left.role == "weak":
        value, role = b * 0.5, right.role
    elif left.role == "conceded":  # although X, Y: Y counts
        value = 0.3 * a + b
    elif left.role in ("contrast", "concede"):
        value, role = b, left.role
    elif right.role == "contrast":  # X but Y: Y counts
        value = 0.3 * a + b
    elif right.role == "concede":  # X although Y: X counts
        value = a + 0.3 * b
    elif left.role is None and right.role in ("strong", "weak") and b == 0:
        value = a * (1.6 if right.role == "strong" else 0.5)
    else:
        value = a + b
        if a * b > 0:  # the stronger one, and a little of the weaker one
            value = (1 if a > 0 else -1) * (max(abs(a), abs(b)) + 0.35 * min(abs(a), abs(b)))
    return Scored(max(-2.0, min(2.0, value)), role=role, parts=(left, right))


def binarise(node, table):
    """Make a tree binary, from the head outwards.

    In a verb phrase the helpers and negation before the head are joined first ("was not clean" | "because"),
    in other phrases what follows the head ("the book" | "about maps").
    """
    if node.is_word:
        return scored_word(node, table)
    kids = [binarise(child, table) for child in node.children]
    if coordinated(node):
        tree = coordination(node, kids)
    else:
        head = binary_head(node)
        tree = kids[head]
        if node.label != "VP":
            for kid in kids[head + 1 :]:
                tree = combine(tree, kid)
        for kid in reversed(kids[:head]):
            if kid.role == "concede":
                kid.role = "conceded"
            tree = combine(kid, tree)
        if node.label == "VP":
            for kid in kids[head + 1 :]:
                tree = combine(tree, kid)
    if node.cls is not None:
        tree.value, tree.role = VALUE[str(node.cls)], None
    return tree


def coordination(node, kids):
    """(a , b and c .) -> ((a (, (b (and c)))) .)."""
    last = len(kids)
    while node.children[last - 1].tag == "PUNCT":
        last -= 1
    tree = kids[last - 1]
    for kid in reversed(kids[: last - 1]):
        tree = combine(kid, tree)
    for kid in kids[last:]:
        tree = combine(tree, kid)
    return tree


def binary_head(node):
    """Where the binary tree of a phrase starts: its head, or its last child if a function word opens it."""
    if node.label in ("SBARQ", "SBAR", "PP", "WHPP"):
        last = len(node.children) - 1
        while last and node.children[last].tag == "PUNCT":
            last -= 1
        return last
    return head_child(node)


# ---------------------------------------------------------------------------------------------------
# Sentences and files
# ---------------------------------------------------------------------------------------------------

NO_SPACE_BEFORE = {".", ",", "?", "!", ";", ":", "...", "%", "n't"}


class Sentence:
    def __init__(self, line, name, lemmas, sentiment):
        self.name = name
        tree = parse(line)
        assign_tags(tree)
        complete(tree)
        self.tree = tree
        self.words = tree.words()
        for index, word in enumerate(self.words, 1):
            word.index = index
            word.lemma = lemma_of(word, lemmas)
        self.arcs = dependencies(tree)
        self.space = self.spaces()
        pieces = zip(self.words, self.space, strict=True)
        self.text = "".join(word.form + (" " if space else "") for word, space in pieces).strip()
        finish_question(tree)
        self.scored = binarise(tree, sentiment)

    def spaces(self):
        """For each word: does a space follow it?"""
        space, quoted = [], False
        for place, word in enumerate(self.words):
            if word.form == '"':
                quoted = not quoted
            after = self.words[place + 1].form if place + 1 < len(self.words) else None
            glued = after is not None and (
                after in NO_SPACE_BEFORE
                or after.startswith("'")
                or (after == '"' and quoted)
                or (word.form == '"' and quoted)
                or word.form == "$"
            )
            space.append(not glued)
        return space

    def conllu(self):
        lines = [f"# sent_id = {self.name}", f"# text = {self.text}"]
        for word, space in zip(self.words, self.space, strict=True):
            head, rel = self.arcs[word.index]
            misc = "_" if space else "SpaceAfter=No"
            row = (word.index, word.form, word.lemma, word.tag, "_", "_", head, rel, "_", misc)
            lines.append("\t".join(map(str, row)))
        return "\n".join(lines) + "\n\n"

    def ptb(self):
        def show(node):
            if node.is_word:
                return f"({node.tag} {node.form})"
            return f"({node.label} {' '.join(map(show, node.children))})"

        return show(self.tree) + "\n"

    def sst(self):
        return self.scored.line() + "\n"


def load_sentences():
    """Read all source files, in the order of their names; return a list of ``Sentence``."""
    lemmas = load_pairs(SOURCE / "lemmas.txt")
    sentiment = load_sentiment(SOURCE / "sentiment.txt")
    sentences = []
    for path in sorted((SOURCE / "sentences").glob("*.txt")):
        number = 0
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.strip() or line.startswith("//"):
                continue
            number += 1
            name = f"{path.stem}-{number:02d}"
            try:
                sentences.append(Sentence(line, name, lemmas, sentiment))
            except Exception as error:
                raise ValueError(f"{name}: {error}") from error
    return sentences


def split(sentences):
    """Every seventh sentence goes to dev, so that both parts hold all domains."""
    dev = [s for i, s in enumerate(sentences) if i % DEV_EVERY == DEV_OFFSET]
    train = [s for i, s in enumerate(sentences) if i % DEV_EVERY != DEV_OFFSET]
    return {"train": train, "dev": dev}


def files(sentences):
    """Return {file name: content} for the six output files."""
    result = {}
    for part, chosen in split(sentences).items():
        result[part + ".conllu"] = "".join(s.conllu() for s in chosen)
        result[part + ".ptb"] = "".join(s.ptb() for s in chosen)
        result[part + ".sst"] = "".join(s.sst() for s in chosen)
    return result


def counts(sentences):
    """Return the table of counts for the README, as text."""
    lines = ["| part | sentences | tokens | types |", "|---|---:|---:|---:|"]
    for part, chosen in [*split(sentences).items(), ("all", sentences)]:
        forms = [w.form.lower() for s in chosen for w in s.words]
        lines.append(f"| {part} | {len(chosen)} | {len(forms)} | {len(set(forms))} |")
    lines += ["", "| domain | sentences | tokens | root classes 0/1/2/3/4 |", "|---|---:|---:|---|"]
    for domain in sorted({s.name.rpartition("-")[0] for s in sentences}):
        chosen = [s for s in sentences if s.name.rpartition("-")[0] == domain]
        roots = [s.scored.label() for s in chosen]
        spread = "/".join(str(roots.count(c)) for c in range(5))
        lines.append(f"| {domain} | {len(chosen)} | {sum(len(s.words) for s in chosen)} | {spread} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="Build the dynet_lite mini-treebank.")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to (default: this folder)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    parser.add_argument("--counts", action="store_true", help="print counts and write nothing")
    args = parser.parse_args()
    sentences = load_sentences()
    if args.counts:
        print(counts(sentences))
        return 0
    stale = []
    for name, content in files(sentences).items():
        path = args.out / name
        if args.check:
            if not path.exists() or path.read_bytes() != content.encode("utf-8"):
                stale.append(name)
        else:
            path.write_bytes(content.encode("utf-8"))
    if stale:
        print("out of date: " + ", ".join(stale), file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
