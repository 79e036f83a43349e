"""The reference: what anybody would write in twenty lines, without a memory.

What belongs here: the same calls as the lane's, from one asyncio loop, each article parsed and
written to a file. No ledger, no budget, no proof; killed, it pays for everything again.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from openai import AsyncOpenAI

from content_pipeline.adapters.llm.strict_schema import strict_schema
from content_pipeline.core.article import parse_article
from content_pipeline.core.ports import GenerationRequest


async def generate_all(
    client: AsyncOpenAI, requests: Sequence[GenerationRequest], folder: Path, in_flight: int
) -> None:
    """One file below ``folder`` for each request."""
    slots = asyncio.Semaphore(in_flight)

    async def one(request: GenerationRequest) -> None:
        async with slots:
            answer = await client.chat.completions.create(
                model=request.model,
                messages=[
                    {"role": "system", "content": request.system},
                    {"role": "user", "content": request.user},
                ],
                response_format={
                    "type": "json_schema",
                    "json_schema": {
                        "name": request.schema_name,
                        "schema": strict_schema(request.schema),
                        "strict": True,
                    },
                },
                max_completion_tokens=request.max_output_tokens,
                store=True,
                # The provider draws the latency from this id: the lane's call had the same.
                metadata={"attempt_id": request.attempt_id, "page_job_id": request.page_job_id},
            )
        article = parse_article(answer.choices[0].message.content or "")
        file = folder / f"{request.page_job_id}.md"
        file.write_text(article.plain_text(), encoding="utf-8")

    await asyncio.gather(*(one(request) for request in requests))
