// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Requests to the server that gave this page.
import { serverKey } from "./store";

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly retryAfter = 0) {
    super(message);
  }
}

export interface Piece {
  content?: string;
  thoughts?: string;
  finish?: string;
  tokens?: number; // of the whole answer
}

interface Chunk {
  choices?: {
    delta?: { content?: string | null; reasoning_content?: string | null };
    finish_reason?: string | null;
  }[];
  usage?: { completion_tokens?: number } | null;
  error?: { message?: string; code?: string | number };
}

function headers(): Record<string, string> {
  const key = serverKey.get();
  return { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
}

async function check(response: Response): Promise<void> {
  if (response.ok) return;
  let message = `the server answers ${response.status}`;
  let code = "";
  try {
    const { error } = await response.json();
    message = typeof error === "string" ? error : (error.message ?? message);
    code = error.code ?? "";
  } catch {
    // not JSON, for example of a proxy
  }
  throw new ApiError(response.status, code, message, Number(response.headers.get("retry-after")) || 0);
}

export async function model(): Promise<{ id: string; context: number } | null> {
  const response = await fetch("/v1/models", { headers: headers() });
  await check(response);
  const { data } = await response.json();
  return data?.[0] ? { id: String(data[0].id), context: Number(data[0].max_model_len) || 0 } : null;
}

function pieceOf(data: string): Piece {
  const chunk = JSON.parse(data) as Chunk;
  const { error } = chunk;
  if (error) throw new ApiError(0, String(error.code ?? ""), error.message ?? "the stream failed");
  const choice = chunk.choices?.[0];
  return {
    content: choice?.delta?.content ?? "",
    thoughts: choice?.delta?.reasoning_content ?? "",
    finish: choice?.finish_reason ?? "",
    tokens: chunk.usage?.completion_tokens ?? 0,
  };
}

// The events of an answer. Ends with an error unless the server said that it is complete.
export async function* chat(body: object, signal: AbortSignal): AsyncGenerator<Piece> {
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: headers(),
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  await check(response);
  if (!response.body) throw new ApiError(0, "", "the answer has no body");
  const reader = response.body.getReader();
  const decoder = new TextDecoder(); // keeps a character that is cut between two reads
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data:")) continue; // comments keep the connection open
      const data = line.slice(5).trim();
      if (data === "[DONE]") return;
      yield pieceOf(data);
    }
  }
  throw new ApiError(0, "", "the connection ended in the middle of the answer");
}
