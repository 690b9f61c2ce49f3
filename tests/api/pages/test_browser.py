"""The pages in a real Chromium: smooth with our script, whole without it, usable by keyboard, on phones, in the dark."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from memagent.api.pages.language import LANGUAGES
from memagent.memory import Source
from tests.api.pages.conftest import link, remember, served
from tests.api.pages.test_memory_pages import NASTY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.api.conftest import Service

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

PATIENCE_MS = 20_000
"""For a machine that is busy with everything else."""

BAD = "version: '1.3.5'\nmemory:\n  disabled: flase\n"


@asynccontextmanager
async def tab(browser: Any, base: str, service: Service | None = None, **how: Any) -> AsyncIterator[Any]:
    """A page that complains about everything that a reader would not see: errors, refused loads, requests elsewhere."""
    context = await browser.new_context(**{"locale": "en-US", **how})
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("dialog", lambda dialog: page.complaints.append(f"dialog {dialog.message}"))
    page.on(
        "console",
        lambda said: (
            page.complaints.append(said.text) if said.type == "error" and "401" not in said.text else None
        ),
    )
    page.on(
        "request",
        lambda asked: (
            None if asked.url.startswith((base, "data:")) else page.complaints.append(f"asked {asked.url}")
        ),
    )
    await page.goto(base + (link(service, "ada") if service else "/"))
    try:
        yield page
    finally:
        await context.close()
    assert page.complaints == []


async def test_delete_and_undo_without_a_reload(open_service: Callable[..., Any], chromium: Any) -> None:
    async with open_service() as service, served(service) as base:
        await remember(service, "ada", "diet", "Ada eats no meat.")
        async with tab(chromium, base, service) as page:
            await page.evaluate("window.stayed = true")
            await page.get_by_role("button", name="Delete").click()
            toast = page.get_by_role("status").filter(has_text="Deleted:")
            await toast.wait_for()
            assert await service.app.state.memory.list("ada") == ()
            assert await page.evaluate("document.activeElement.textContent.trim()") == "Undo"
            await page.keyboard.press("Enter")
            await page.get_by_role("article", name="diet").wait_for()
            assert await page.evaluate("window.stayed") is True
            assert page.url == f"{base}/"
            await page.get_by_role("button", name="Close").click()
            assert await page.locator("[data-toast]").count() == 0
        assert [each.key for each in await service.app.state.memory.list("ada")] == ["diet"]


async def test_add_edit_search_and_switch(open_service: Callable[..., Any], chromium: Any) -> None:
    async with open_service() as service, served(service) as base:
        await remember(service, "ada", "home", "Sống ở Đà Nẵng.")
        memory = service.app.state.memory
        async with tab(chromium, base, service) as page:
            await page.get_by_text("Add a memory").click()
            await page.get_by_label("Key").first.fill("Favourite tea")
            await page.get_by_label("What should be remembered").first.fill("Oolong")
            await page.get_by_role("button", name="Save").first.click()
            card = page.get_by_role("article", name="favourite_tea")
            await card.get_by_text("Edit").click()
            await card.get_by_label("What should be remembered").fill("Green")
            await card.get_by_role("button", name="Save").click()
            await card.get_by_text("Green", exact=True).first.wait_for()
            assert (await memory.get("ada", "favourite_tea")).value == "Green"

            await page.get_by_role("searchbox").fill("da nang")
            await card.wait_for(state="detached")
            assert await page.get_by_role("article", name="home").count() == 1
            assert await page.evaluate("document.activeElement.id") == "words", "typing goes on"

            switch = page.get_by_role("switch")
            await switch.focus()
            await page.keyboard.press("Space")
            await page.get_by_text("Personalization is off.").wait_for()
            assert await switch.get_attribute("aria-checked") == "false"
            assert await memory.personalization("ada") is False


async def test_everything_works_with_scripts_switched_off(
    open_service: Callable[..., Any], chromium: Any
) -> None:
    async with open_service() as service, served(service) as base:
        await remember(service, "ada", "home", "12 Phố Huế", source=Source.TOOL, trusted=False)
        memory = service.app.state.memory
        async with tab(chromium, base, service, java_script_enabled=False) as page:
            await page.get_by_role("button", name="Accept").click()
            assert (await memory.get("ada", "home")).trusted
            await page.get_by_role("button", name="Delete").click()
            assert await memory.list("ada") == ()
            await page.get_by_role("button", name="Undo").click()
            assert len(await memory.list("ada")) == 1
            await page.get_by_role("searchbox").fill("absent")
            await page.get_by_role("button", name="Search").click()
            await page.get_by_text("No memory holds all of these words.").wait_for()
            await page.get_by_role("link", name="Your data").click()
            await page.get_by_label("I am sure: erase everything about me").check()
            await page.get_by_role("button", name="Erase everything").click()
            await page.get_by_text("You have been forgotten").wait_for()
            await page.get_by_role("button", name="Sign out").click()
            await page.get_by_role("heading", name="You are not signed in").wait_for()


async def test_no_memory_runs_or_breaks_out(open_service: Callable[..., Any], chromium: Any) -> None:
    async with open_service(extra="charLimit: 20000") as service, served(service) as base:
        for n, value in enumerate((*NASTY, "x" * 10_000, "word " * 2_000)):
            await remember(service, "ada", f"nasty_{n}", value, quote=value[:200])
        async with tab(chromium, base, service, viewport={"width": 390, "height": 844}) as page:
            for path in ("/", "/history"):
                await page.goto(base + path)
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                assert await page.locator("script").count() == 1
                assert await page.locator("img, iframe, form[action^='//']").count() == 0
            await page.goto(base + "/")
            for n, value in enumerate(NASTY):
                card = page.get_by_role("article", name=f"nasty_{n}", exact=True)
                assert await card.locator("p.value").evaluate("each => each.textContent") == value
                await card.get_by_text("Edit").click()
                assert await card.locator("textarea").input_value() == value
            await page.get_by_role("searchbox").fill("<script>")
            await page.get_by_text("2 memories found.").wait_for()


async def test_a_file_is_checked_while_it_is_typed(
    open_service: Callable[..., Any], chromium: Any, tmp_path: Path
) -> None:
    file = tmp_path / "librechat.yaml"
    file.write_text(BAD.replace("flase", "treu"))
    async with open_service(fixed_user="me") as service, served(service) as base, tab(chromium, base) as page:
        await page.goto(f"{base}/admin/validate")
        area = page.get_by_label("librechat.yaml", exact=True)
        await area.fill(f"# 👩‍👩‍👧\n{BAD}")
        place = page.get_by_role("link", name="Line 4, column 13")
        await place.wait_for()
        assert await page.locator(".frame .primary").all_inner_texts() == ["^^^^^"]
        await place.click()
        assert (
            await page.evaluate(
                "getSelection().toString() || yaml.value.slice(yaml.selectionStart, yaml.selectionEnd)"
            )
            == "flase"
        )
        await area.fill(BAD.replace("flase", "false"))
        await page.get_by_text("LibreChat starts with this file.").wait_for()
        await page.set_input_files("#yaml-file", file)
        await page.get_by_text("found the text").wait_for()
        assert await area.input_value() == file.read_text()


@pytest.mark.parametrize("code", LANGUAGES)
async def test_no_page_is_wider_than_a_small_phone(
    open_service: Callable[..., Any], chromium: Any, code: str
) -> None:
    async with open_service() as service, served(service) as base:
        await remember(
            service, "ada", "a_rather_long_key_of_a_memory_that_goes_on", "Ada eats no meat.", quote="no meat"
        )
        await remember(service, "ada", "home", "12 Phố Huế", source=Source.TOOL, trusted=False)
        small = {"viewport": {"width": 320, "height": 640}, "locale": code, "color_scheme": "dark"}
        async with tab(chromium, base, service, **small) as page:
            for path in ("/", "/history", "/data", "/sessions", "/admin/validate", "/?place=x"):
                page.complaints.clear() if path == "/?place=x" else None
                await page.goto(base + path)
                assert await page.evaluate("document.documentElement.lang") == code
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            page.complaints.clear()  # the browser reports the last page's status


async def test_everything_can_be_reached_and_seen_by_keyboard(
    open_service: Callable[..., Any], chromium: Any
) -> None:
    async with open_service() as service, served(service) as base:
        await remember(service, "ada", "diet", "Ada eats no meat.")
        async with tab(chromium, base, service) as page:
            reached: list[str] = []
            for _ in range(40):
                await page.keyboard.press("Tab")
                name, outline = await page.evaluate(
                    "[document.activeElement === document.body ? '' : document.activeElement.textContent.trim() || document.activeElement.id,"
                    " getComputedStyle(document.activeElement).outlineStyle]"
                )
                if not name:
                    break  # the browser's own controls come after the last link
                reached.append(name)
                assert outline != "none", f"{name} shows no focus"
            assert reached[0] == "Skip to the content"
            assert {
                "Memories",
                "Your data",
                "Personalization",
                "words",
                "Add a memory",
                "Edit",
                "Delete",
            } <= set(reached)


async def test_every_control_has_a_name_and_every_page_its_landmarks(
    open_service: Callable[..., Any], chromium: Any
) -> None:
    nameless = """() => [...document.querySelectorAll('input:not([type=hidden]), select, textarea, button, a, summary')]
        .filter(each => !each.labels?.length && !each.getAttribute('aria-label') && !each.textContent.trim())
        .map(each => each.outerHTML)"""
    async with open_service() as service, served(service) as base:
        await remember(service, "ada", "diet", "Ada eats no meat.")
        async with tab(chromium, base, service) as page:
            for path in ("/", "/history", "/data", "/sessions", "/admin/validate"):
                await page.goto(base + path)
                assert await page.evaluate(nameless) == []
                assert await page.locator("h1").count() == 1
                for role in ("banner", "main", "contentinfo"):
                    assert await page.get_by_role(role).count() == 1
                twice = "() => { const ids = [...document.querySelectorAll('[id]')].map(e => e.id); return ids.length - new Set(ids).size }"
                assert await page.evaluate(twice) == 0


CONTRAST = """() => {
    const parse = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
    const ground = each => {
        for (; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            if (colour.startsWith('rgb(')) return parse(colour);
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const each of document.querySelectorAll('main p, main span, main bdi, main a, main button, main summary, main h1, main h2, main label, header a, footer a')) {
        if (!each.textContent.trim() || !each.offsetParent || each.classList.contains('sr') || each.classList.contains('knob')) continue;
        const [a, b] = [light(parse(getComputedStyle(each).color)), light(ground(each))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) found.push(each.outerHTML.slice(0, 120));
    }
    return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_can_be_read_in_light_and_dark(
    open_service: Callable[..., Any], chromium: Any, scheme: str
) -> None:
    async with open_service(environ={"MEMAGENT_DORMANT_AFTER_DAYS": "1"}) as service, served(service) as base:
        await remember(service, "ada", "diet", "Ada eats no meat.", quote="no meat")
        service.later(days=1)
        await service.app.state.memory.recall("ada", "a walk in the mountains")
        await service.app.state.memory.put("ada", "tea", "Green")
        await remember(service, "ada", "home", "12 Phố Huế", source=Source.TOOL, trusted=False)
        async with tab(chromium, base, service, color_scheme=scheme) as page:
            for path in ("/", "/history", "/data"):
                await page.goto(base + path)
                assert await page.evaluate(CONTRAST) == []
