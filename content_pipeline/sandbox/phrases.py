"""The sentences an article of the sandbox is made of, as data.

What belongs here: templates over ``name``, ``label``, ``verb`` and ``value``. No sentence holds a
digit or a fact of its own, so everything a page claims comes from its row. How they are chosen
and joined is in ``writer``.
"""

COUNTRY = {
    "capital": (
        "{value} is the capital of {name}.",
        "The capital of {name} is {value}.",
        "Its capital goes by the name of {value}.",
        "On a map of {name}, {value} is marked as the capital.",
    ),
    "continent": (
        "{name} belongs to {value}.",
        "The source places {name} in {value}.",
        "Its continent is {value}.",
        "On the globe, {name} is found in {value}.",
    ),
    "area": (
        "{name} covers an area of {value}.",
        "Its area is given as {value}.",
        "The area of {name} comes to {value}.",
        "In size, {name} is listed with {value}.",
    ),
    "population": (
        "{name} is home to {value} people.",
        "The population of {name} is put at {value}.",
        "Its population stands at {value}.",
        "The number of people living in {name} is given as {value}.",
    ),
    "currency": (
        "Its currency is listed as {value}.",
        "The money used in {name} is {value}.",
        "For payments in {name}, the currency to know is {value}.",
        "Prices in {name} are quoted in {value}.",
    ),
    "language": (
        "The language listed for {name} is {value}.",
        "In {name}, the language to expect is {value}.",
        "Its listed language is {value}.",
        "Signs and forms in {name} are likely to be in {value}.",
    ),
    "languages": (
        "The languages listed for {name} are {value}.",
        "In {name}, several languages are on record: {value}.",
        "Its listed languages are {value}.",
        "Those who speak {value} will find their own words in {name}.",
    ),
    "neighbour": (
        "{name} shares a land border with {value}.",
        "Its listed neighbour is {value}.",
        "Next to {name} lies {value}.",
        "The land border of {name} is with {value}.",
    ),
    "neighbours": (
        "{name} shares its land borders with {value}.",
        "Its neighbours are {value}.",
        "Around {name} lie {value}.",
        "Leaving {name} over land leads into one of these: {value}.",
    ),
    "internet domain": (
        "Websites from {name} can be recognised by the ending {value}.",
        "The internet domain of {name} is {value}.",
        "On the internet, its own ending is {value}.",
        "Web addresses of {name} may end in {value}.",
    ),
    "calling code": (
        "The calling code of {name} is {value}.",
        "Calls to {name} from abroad begin with {value}.",
        "To ring a number in {name} from elsewhere, dial {value} first.",
        "Its calling code is {value}.",
    ),
    "iso code": (
        "In standardised lists, {name} appears as {value}.",
        "Its ISO code is {value}.",
        "Forms and databases shorten {name} to {value}.",
        "The ISO code of {name} is {value}.",
    ),
}
"""Kind of fact → phrasings. Plural kinds are used when a value is a list."""

COUNTRY_KINDS = {
    "capital": "capital",
    "capital city": "capital",
    "continent": "continent",
    "area": "area",
    "population": "population",
    "currency": "currency",
    "currencies": "currency",
    "language": "language",
    "languages": "language",
    "official languages": "language",
    "neighbours": "neighbour",
    "neighbors": "neighbour",
    "neighbouring countries": "neighbour",
    "borders": "neighbour",
    "internet domain": "internet domain",
    "top-level domain": "internet domain",
    "tld": "internet domain",
    "calling code": "calling code",
    "dialling code": "calling code",
    "phone code": "calling code",
    "iso code": "iso code",
    "country code": "iso code",
}
"""A label in lower case → its kind; a label that is not here gets a generic sentence."""

TELLING_KINDS = frozenset({"capital", "continent", "internet domain", "calling code", "iso code"})
"""Two of these make a row a country; a lone "capital" may as well be a company's."""

COUNTRY_PARTS = {
    "land": ("capital", "continent", "area", "neighbour"),
    "people": ("population", "language"),
    "daily": ("currency", "internet domain", "calling code", "iso code"),
}
"""The sections of a country's page, in reading order; all other facts make a part of their own."""

GENERIC = (
    "Its {label} {verb} {value}.",
    "The {label} of {name} {verb} {value}.",
    "For {label}, the source gives {value}.",
    "The entry for {label} reads {value}.",
    "Under {label}, the record of {name} shows {value}.",
    "As to {label}, {name} is listed with {value}.",
)

LONG = (
    "On {label}, the record of {name} says: {value}",
    "The entry for {label} is a longer one: {value}",
    "Under {label} the source has this to say: {value}",
)
"""For values that are texts of their own and would break a sentence around them."""

NOTHING = (
    "Under {label}, the record of {name} says {value}.",
    "The entry for {label} reads {value}, so there is nothing to add.",
    "For {label}, the source simply gives {value}.",
)
"""For values such as "none": stated, and not dressed up as something."""

OPENINGS = (
    "{name} is the subject of this page, which gathers what the source table says about it.",
    "This page introduces {name} in a few short parts, each built on entries of one record.",
    "Whoever wants to know the essentials about {name} will find them collected here.",
    "Here is {name} in brief: what is on record, arranged so that it can be read in one go.",
)

COUNTRY_OPENINGS = (
    "{name} is a country in {continent}, and its capital is {capital}.",
    "With {capital} as its capital, {name} is one of the countries of {continent}.",
    "Look for {name} in {continent} and, on its map, for the capital {capital}.",
    "Among the countries of {continent} is {name}, whose capital is {capital}.",
)
"""Used when both facts are there; they then need no sentence further down."""

INTRODUCTIONS = (
    "The parts below go from the broad picture to the small details.",
    "Each part can be read alone, so feel free to jump to the one that matters.",
    "The text keeps to the record and leaves guesses to others.",
    "Every statement in it comes from one and the same record.",
    "It can be read in about a minute.",
    "It is meant for readers who like a clear answer more than a long story.",
    "None of it asks for any earlier knowledge of the subject.",
)

TITLES = (
    "{name}: Key Facts at a Glance",
    "{name} in Facts and Figures",
    "Facts About {name}",
    "{name}: A Short Profile",
    "A Short Guide to {name}",
    "Getting to Know {name}",
    "{name}: The Essentials",
)

META = (
    "The essential facts about {name} on one page: {labels} and more, clearly arranged.",
    "{name} in brief: {labels} and further entries, each taken from the source table.",
    "Looking for facts about {name}? Find {labels} and more in this short overview.",
    "A compact profile of {name} with {labels} and everything else on record.",
)

HEADINGS = {
    "land": ("Where {name} Lies", "Land and Borders", "On the Map", "Place and Size"),
    "people": ("People and Languages", "Who Lives in {name}", "The People of {name}", "Population"),
    "daily": ("Money and Codes", "Useful in Everyday Life", "Practical Details", "Good to Know"),
    "other": ("Further Entries", "Also on Record", "More About {name}", "Other Details"),
    "essentials": ("The Essentials", "What Stands Out", "First Things First", "The Main Points"),
    "detail": ("In More Detail", "A Closer Look", "Looking Closer at {name}", "The Details"),
    "list": ("{name} at a Glance", "Overview", "The Facts in Short", "Quick Reference"),
    "closing": ("About This Page", "Where This Comes From", "In Closing", "The Source"),
    "reading": ("How to Read This Page", "A Note for Readers", "Before Quoting", "Reading On"),
}

LEAD_INS = {
    "land": (
        "Every profile of a country starts with the map.",
        "The first question about a country is usually where it is and how large.",
        "Size and surroundings set the scene for everything else.",
        "Place and extent come first, as in any atlas.",
        "To picture a country, it helps to begin with its outline.",
    ),
    "people": (
        "A country is above all the people who live there.",
        "Numbers and languages say a good deal about daily life.",
        "Behind the map there are people and the words they use.",
        "Who lives here, and what do they speak?",
        "After the land come those who call it home.",
    ),
    "daily": (
        "Some details only matter when they are needed, and then at once.",
        "Travellers, traders and web developers tend to look for the same few entries.",
        "The practical side of a country often fits into a few short codes.",
        "Paying, calling and typing an address each need one small detail.",
        "What follows is less scenic, yet looked up more often than anything else.",
    ),
    "other": (
        "The record holds a little more than the usual entries.",
        "A few entries fit under no other heading.",
        "Beyond the main points, this is also known.",
    ),
    "essentials": (
        "A few entries matter more than all others.",
        "The shortest way into the subject leads through its main entries.",
        "These are the points most readers ask about first.",
    ),
    "detail": (
        "The remaining entries complete the picture.",
        "A closer look brings out the finer points.",
        "Those who want to know more will find it here.",
    ),
    "list": (
        "The same entries once more, in the order of the record:",
        "For a quick look-up, here are the entries as a list:",
        "All in one place, ready to be compared or copied:",
    ),
    "closing": (
        "This page rests on a single record about {name}.",
        "Everything said here about {name} goes back to one source table.",
        "The text above was put together from the entries listed for {name}.",
    ),
    "reading": (
        "A few remarks help to make the most of a page on {name}.",
        "Some things are good to bear in mind when reading about {name}.",
        "A word on what to expect from a short text on {name}.",
    ),
}

REMARKS = (
    "Nothing was added that the source does not state.",
    "Values are quoted as they stand, without rounding or conversion.",
    "If an entry is missing above, the record simply did not hold it.",
    "Should the source change, the page will be written anew from the corrected record.",
    "Readers who spot an error are best served by checking the source first.",
    "Names and spellings follow the record, even where other forms are in use.",
    "A page like this cannot replace a full study, but it answers the first questions.",
    "For comparisons, it helps to open the page of a second subject side by side.",
    "The order of the parts says nothing about their weight.",
    "Wherever a list appears, its order is that of the source.",
    "Different sources may count or measure in different ways, so small gaps are normal.",
    "Anyone quoting from this page should name the original record as well.",
    "The wording may differ from page to page, while the entries stay the same.",
    "Opinions, forecasts and rumours were left out on purpose.",
    "Short entries are not a sign of poor sources; many facts need no more room.",
    "Those in a hurry will find what they need by the headings alone.",
    "It pays to come back from time to time, since records are revised.",
    "Each statement can be traced to one labelled entry.",
    "Where the record is silent, so is this page.",
    "The aim is a text that can be read in a minute and trusted afterwards.",
    "No entry was combined with another to arrive at something new.",
    "The subject may well have more sides than a table can show.",
)
"""Sentences true of every page: they bring a thin record up to a readable length."""
