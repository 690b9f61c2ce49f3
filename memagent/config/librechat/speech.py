"""The `speech` block: text to speech, speech to text, and their tab."""

from __future__ import annotations

from typing import Final

from memagent.config.librechat.addresses import ADDRESSES
from memagent.config.zod import FLAG, NUMBER, TEXT, TEXTS, Choice, Needed, Number, Object, Union

SPEECH: Final = Object(
    tts=Object(
        allowedAddresses=ADDRESSES,
        openai=Object(
            url=TEXT,
            apiKey=Needed(TEXT),
            apiKeyPreview=TEXT,
            model=Needed(TEXT),
            voices=Needed(TEXTS),
        ),
        azureOpenAI=Object(
            instanceName=Needed(TEXT),
            apiKey=Needed(TEXT),
            apiKeyPreview=TEXT,
            deploymentName=Needed(TEXT),
            apiVersion=Needed(TEXT),
            model=Needed(TEXT),
            voices=Needed(TEXTS),
        ),
        elevenlabs=Object(
            url=TEXT,
            websocketUrl=TEXT,
            apiKey=Needed(TEXT),
            apiKeyPreview=TEXT,
            model=Needed(TEXT),
            voices=Needed(TEXTS),
            voice_settings=Object(
                similarity_boost=NUMBER,
                stability=NUMBER,
                style=NUMBER,
                use_speaker_boost=FLAG,
            ),
            pronunciation_dictionary_locators=TEXTS,
        ),
        localai=Object(
            url=Needed(TEXT),
            apiKey=TEXT,
            apiKeyPreview=TEXT,
            voices=Needed(TEXTS),
            backend=Needed(TEXT),
        ),
    ),
    stt=Object(
        allowedAddresses=ADDRESSES,
        openai=Object(
            url=TEXT,
            apiKey=Needed(TEXT),
            apiKeyPreview=TEXT,
            model=Needed(TEXT),
        ),
        azureOpenAI=Object(
            instanceName=Needed(TEXT),
            apiKey=Needed(TEXT),
            apiKeyPreview=TEXT,
            deploymentName=Needed(TEXT),
            apiVersion=Needed(TEXT),
        ),
    ),
    speechTab=Object(
        conversationMode=FLAG,
        advancedMode=FLAG,
        speechToText=Union(
            FLAG,
            Object(
                engineSTT=Choice("browser", "external", "openai", "azureOpenAI"),
                languageSTT=TEXT,
                autoTranscribeAudio=FLAG,
                decibelValue=NUMBER,
                autoSendText=NUMBER,
            ),
        ),
        textToSpeech=Union(
            FLAG,
            Object(
                engineTTS=Choice("browser", "external", "openai", "azureOpenAI", "elevenlabs", "localai"),
                voice=TEXT,
                languageTTS=TEXT,
                automaticPlayback=FLAG,
                playbackRate=Number(min=0.25, max=4),
                cacheTTS=FLAG,
            ),
        ),
    ),
)
