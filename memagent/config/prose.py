"""What the keys of librechat.yaml are for, in a few words: titles, descriptions and examples of the JSON Schemas."""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class Prose(NamedTuple):
    """What an editor shows of a key."""

    title: str
    description: str
    examples: tuple[Any, ...] = ()


SECTIONS: Final = {
    "version": Prose("Configuration version", "The version of LibreChat's configuration that this file is written for, in quotes.", ("1.3.17",)),
    "permissions": Prose("Permissions", "How often LibreChat tries to write permissions at start."),
    "cache": Prose("Cache", "Whether LibreChat keeps the configuration in its cache."),
    "ocr": Prose("Text recognition", "Which service reads text in pictures and scans."),
    "webSearch": Prose("Web search", "Search engine, page reader and ranker of the web search, with their keys."),
    "langfuse": Prose("Langfuse", "Traces of model calls for Langfuse."),
    "memory": Prose("Memory", "What is remembered about a user from chat to chat."),
    "summarization": Prose("Summaries", "When and how long chats are summarised."),
    "skillSync": Prose("Skills from GitHub", "Repositories from which skills are fetched."),
    "secureImageLinks": Prose("Secure image links", "Whether pictures are served to signed-in users only."),
    "imageOutputType": Prose("Image type", "The format in which LibreChat keeps pictures."),
    "includedTools": Prose("Tools on offer", "If not empty, the only tools there are."),
    "filteredTools": Prose("Tools taken away", "Tools that are not on offer."),
    "mcpServers": Prose("MCP servers", "Servers of the Model Context Protocol, by name.", ({"files": {"command": "npx", "args": ["-y", "server"]}},)),
    "mcpSettings": Prose("MCP limits", "Which domains and addresses MCP servers may have, and how their catalogue recovers."),
    "interface": Prose("Interface", "What the chat window shows, and who may use what."),
    "turnstile": Prose("Turnstile", "Cloudflare's check for humans at sign-in."),
    "fileStrategy": Prose("File store", "Where files are kept."),
    "fileStrategies": Prose("File stores by kind", "Where files of each kind are kept; `fileStrategy` for the others."),
    "cloudfront": Prose("CloudFront", "The distribution that serves files."),
    "actions": Prose("Actions", "Which domains and addresses the actions of agents may call."),
    "registration": Prose("Registration", "Who may register, and through which services."),
    "balance": Prose("Balance", "Token credits of users, and how they fill up."),
    "transactions": Prose("Transactions", "Whether the use of tokens is recorded."),
    "speech": Prose("Speech", "Text to speech, speech to text, and their settings in the window."),
    "rateLimits": Prose("Rate limits", "How often users and addresses may upload, import, listen and speak."),
    "fileConfig": Prose("Files", "Which files users may attach, how many and how large."),
    "modelSpecs": Prose("Model specs", "Presets that users choose instead of an endpoint and a model."),
    "filters": Prose("Filters", "Personal data that is blocked or noted, by where it stands."),
    "messageFilter": Prose("Message filter", "Personal data that is blocked in messages; the older form of `filters`."),
    "endpoints": Prose("Endpoints", "The providers of models. At least one must be named."),
    "openapi": Prose("OpenAPI", "Whether LibreChat serves a description of its interface."),
}  # fmt: skip

MEMORY: Final = {
    "memory.disabled": Prose("Switch memory off", "true switches everything about memory off.", (False, True)),
    "memory.validKeys": Prose("Allowed keys", "The keys a memory may be stored under. Leave it out to allow any key.", (["preferences", "work_info", "personal_info"],)),
    "memory.tokenLimit": Prose("Tokens in all", "All memories of one user together, in tokens. Leave it out for no limit.", (2000,)),
    "memory.charLimit": Prose("Characters of one memory", "One memory, in characters.", (10_000,)),
    "memory.maxInputTokens": Prose("Tokens the agent reads", "What the agent reads of one chat at most, in tokens; the newest text stays.", (12_000,)),
    "memory.personalize": Prose("Switch for users", "Whether users have a switch for being remembered; false stops memagent from learning.", (True,)),
    "memory.messageWindowSize": Prose("Messages the agent reads", "How many of the last messages the agent reads.", (5,)),
    "memory.agent": Prose("Memory agent", "The agent that stores: `id` of a saved one, or `provider` and `model` of one described here.", ({"enabled": True, "provider": "openAI", "model": "gpt-4o-mini"},)),
    "memory.agent.enabled": Prose("Run the agent", "LibreChat runs the agent only if this is true.", (True,)),
    "memory.agent.id": Prose("Saved agent", "The id of an agent saved in LibreChat.", ("agent_abc123",)),
    "memory.agent.provider": Prose("Provider", "The name of a custom endpoint, letter by letter, or a built-in provider.", ("openAI", "anthropic")),
    "memory.agent.model": Prose("Model", "A model of that provider.", ("gpt-4o-mini",)),
    "memory.agent.instructions": Prose("Instructions", "Replaces the built-in instructions.", ("Remember what the user prefers.",)),
    "memory.agent.model_parameters": Prose("Model parameters", "Sent with each request.", ({"temperature": 0.2},)),
}  # fmt: skip

CUSTOM: Final = {
    "endpoints.allowedAddresses": Prose("Private addresses", "Private `host:port` pairs that endpoints may have.", (["localhost:11434"],)),
    "endpoints.all": Prose("All endpoints", "What holds for every endpoint."),
    "endpoints.agents": Prose("Agents", "Limits and abilities of agents."),
    "endpoints.custom": Prose("Custom endpoints", "Servers that speak OpenAI's interface.", ([{"name": "Mistral", "apiKey": "${MISTRAL_API_KEY}", "baseURL": "https://api.mistral.ai/v1", "models": {"default": ["mistral-small"]}}],)),
    "endpoints.custom[].name": Prose("Name", "What users see, and what `memory.agent.provider` repeats.", ("Mistral",)),
    "endpoints.custom[].apiKey": Prose("API key", "`${NAME}` of the server's environment, or `user_provided`.", ("${MISTRAL_API_KEY}", "user_provided")),
    "endpoints.custom[].baseURL": Prose("Address", "The address up to and without /chat/completions.", ("https://api.mistral.ai/v1",)),
    "endpoints.custom[].models": Prose("Models", "The models on offer: `default` lists them, `fetch` asks the server for more.", ({"default": ["mistral-small"], "fetch": True},)),
    "endpoints.custom[].models.default": Prose("Listed models", "At least one, also with `fetch: true`."),
    "endpoints.custom[].models.fetch": Prose("Ask the server", "Whether the server is asked for its models."),
    "endpoints.custom[].headers": Prose("Headers", "Sent with each request; `${NAME}` and `{{LIBRECHAT_USER_ID}}` are replaced.", ({"x-user": "{{LIBRECHAT_USER_ID}}"},)),
    "endpoints.custom[].iconURL": Prose("Icon", "The address of a picture, or the name of a built-in one."),
    "endpoints.custom[].modelDisplayLabel": Prose("Label", "What stands above the answers."),
    "endpoints.custom[].provider": Prose("Protocol", "`anthropic` if the server speaks Anthropic's interface instead."),
    "endpoints.custom[].addParams": Prose("Added parameters", "Put into each request.", ({"safe_prompt": True},)),
    "endpoints.custom[].dropParams": Prose("Dropped parameters", "Never sent.", (["stop", "user"],)),
    "endpoints.custom[].customParams": Prose("Parameters in the window", "Which parameters users may set, and with which defaults."),
    "endpoints.custom[].titleConvo": Prose("Titles", "Whether chats get titles.", (True,)),
    "endpoints.custom[].titleModel": Prose("Title model", "The model that writes titles, or `current_model`.", ("current_model",)),
    "endpoints.custom[].directEndpoint": Prose("Address as it is", "Whether requests go to `baseURL` itself, with nothing added to it."),
    "endpoints.custom[].tokenConfig": Prose("Prices and sizes", "Prices and context size, by model."),
}  # fmt: skip

PROSE: Final[dict[str, Prose]] = {**SECTIONS, **MEMORY, **CUSTOM}
"""By place: keys joined by dots, `[]` for the items of a list."""
