"""Chat models of known services: `OpenAIChatModel` with the address and the key's variable filled in."""

import re
from typing import Any

from hipporag_torch.errors import ConfigError
from hipporag_torch.llms.openai import OpenAIChatModel


def azure_chat_model(
    *,
    endpoint: str,
    deployment: str,
    api_version: str,
    api_key_env: str = "AZURE_OPENAI_API_KEY",
    **options: Any,
) -> OpenAIChatModel:
    """A deployment of an Azure OpenAI resource. endpoint: such as https://NAME.openai.azure.com.

    options: the other parameters of `OpenAIChatModel`.
    """
    return OpenAIChatModel(
        model=deployment, base_url=endpoint, api_version=api_version, api_key_env=api_key_env, **options
    )


def bedrock_chat_model(
    *, region: str, model: str, api_key_env: str = "AWS_BEARER_TOKEN_BEDROCK", **options: Any
) -> OpenAIChatModel:
    """A model on Amazon Bedrock, through its OpenAI-compatible endpoint. region: such as us-west-2.

    The key is a Bedrock API key. options: the other parameters of `OpenAIChatModel`.
    """
    if not re.fullmatch(r"[a-z0-9-]+", region):
        raise ConfigError(f"a region of AWS, such as us-west-2, was expected, got {region!r}")
    base_url = f"https://bedrock-runtime.{region}.amazonaws.com/openai/v1"
    return OpenAIChatModel(model=model, base_url=base_url, api_key_env=api_key_env, **options)
