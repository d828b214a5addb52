"""Our prompts, as versioned data files, and their loader."""

from hipporag_torch.prompts.template import PromptTemplate, load_prompt, prompt_names

__all__ = ["READER_PROMPTS", "PromptTemplate", "load_prompt", "prompt_names"]

READER_PROMPTS = {
    "2wiki": "reader_multihop",
    "default": "reader",
    "hotpotqa": "reader_multihop",
    "lveval": "reader_long",
    "musique": "reader_multihop",
    "narrativeqa": "reader_narrative",
    "nq": "reader_simple",
    "popqa": "reader_simple",
}
"""Family of data sets → the name of the prompt to read it with."""
