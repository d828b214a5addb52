"""Reading what models send: one parser for the replies of all backends."""

from hipporag_torch.replies.json_reply import JsonReply, Wanted, parse_json_reply
from hipporag_torch.replies.reasoning import without_reasoning

__all__ = ["JsonReply", "Wanted", "parse_json_reply", "without_reasoning"]
