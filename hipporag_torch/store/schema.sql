-- What an index directory's records.sqlite holds. Numbers of generations ascend by one; a row lives from the
-- generation that it was born in to the one that it died in, which no longer has it. `digest` covers the
-- other columns but `died`.

-- What the index is, as JSON by name: the text and graph options.
CREATE TABLE properties (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- One row per commit: what it did, and how many rows of each kind it left alive.
CREATE TABLE generations (
    number INTEGER PRIMARY KEY, action TEXT NOT NULL,
    passages INTEGER NOT NULL, sources INTEGER NOT NULL, extractions INTEGER NOT NULL,
    phrases INTEGER NOT NULL, facts INTEGER NOT NULL
);

-- The embedders that vectors are kept of: identity, how to build it, and the arrays of the last generation
-- that it has taken part in, -1 before the first. The main one committed last: opening takes it where none
-- is stated.
CREATE TABLE embedders (
    id INTEGER PRIMARY KEY, identity TEXT NOT NULL, settings TEXT NOT NULL, dtype TEXT NOT NULL,
    main INTEGER NOT NULL, generation INTEGER NOT NULL,
    arrays TEXT NOT NULL, arrays_bytes INTEGER NOT NULL, arrays_digest BLOB NOT NULL
);

-- The file that holds the vectors of one embedder and kind (passage, phrase, fact), and how many rows of it
-- are finished, beside a file with the digests of their texts. Segments are runs of rows, with a digest of both.
CREATE TABLE vector_files (
    embedder INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, finished INTEGER NOT NULL,
    PRIMARY KEY (embedder, kind)
) WITHOUT ROWID;
CREATE TABLE segments (
    embedder INTEGER NOT NULL, kind TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
    digest BLOB NOT NULL, PRIMARY KEY (embedder, kind, start)
) WITHOUT ROWID;

-- One row: a digest of the tables above.
CREATE TABLE seal (digest BLOB NOT NULL);

CREATE TABLE passages (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, text TEXT NOT NULL,
    born INTEGER NOT NULL, died INTEGER, digest BLOB NOT NULL
);
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, passage INTEGER NOT NULL, source TEXT NOT NULL, position INTEGER NOT NULL,
    metadata TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
    born INTEGER NOT NULL, died INTEGER, digest BLOB NOT NULL
);
CREATE TABLE extractions (
    id INTEGER PRIMARY KEY, passage INTEGER NOT NULL, status TEXT NOT NULL, permanent INTEGER NOT NULL,
    producer TEXT NOT NULL, content TEXT NOT NULL,
    born INTEGER NOT NULL, died INTEGER, digest BLOB NOT NULL
);
CREATE INDEX sources_of_passage ON sources (passage);
CREATE INDEX extractions_of_passage ON extractions (passage);
CREATE TABLE phrases (
    id INTEGER PRIMARY KEY, text TEXT NOT NULL, born INTEGER NOT NULL, died INTEGER, digest BLOB NOT NULL
);
-- A sentence that stands for a fact is a subject alone.
CREATE TABLE facts (
    id INTEGER PRIMARY KEY, subject TEXT NOT NULL, predicate TEXT, object TEXT,
    born INTEGER NOT NULL, died INTEGER, digest BLOB NOT NULL
);

-- Paid for, and in no generation yet: what an interrupted change had finished. (Finished vectors that no
-- generation names are found by the digests of their texts, which stand beside them.)
CREATE TABLE staged_extractions (
    passage TEXT NOT NULL, producer TEXT NOT NULL, content TEXT NOT NULL, PRIMARY KEY (passage, producer)
) WITHOUT ROWID;
