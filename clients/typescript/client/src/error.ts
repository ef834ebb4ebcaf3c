/** What the server says of a refusal, in the form that every route of /api has. */
export interface Problem {
  type: string;
  code: string;
  message: string;
  param?: string;
  details?: Record<string, unknown>;
}

/**
 * A request that was refused, or that nobody answered in time. `code` is one of docs/commands.md, such
 * as `not_found`, `version_conflict` or `unavailable`.
 */
export class SkeinError extends Error {
  override readonly name = "SkeinError";

  constructor(
    /** What kind of refusal it is. */
    readonly code: string,
    message: string,
    /** The status of the answer; 0 if there was none. */
    readonly status: number = 0,
    /** The path of the field that was refused, empty if it is none. */
    readonly param: string = "",
    /** More of it, by its code: `currentVersion` of a version_conflict. */
    readonly details: Record<string, unknown> = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /** Whether the same request may succeed later. */
  get retry(): boolean {
    return ["unavailable", "queue_full", "projection_behind"].includes(this.code) || [408, 429, 502, 503, 504].includes(this.status);
  }
}

/** Returns the refusal that a frame of a stream, or the body of an answer with that status, tells. */
export function refusalIn(text: string, status: number = 0): SkeinError {
  const { error } = JSON.parse(text) as { error: Problem };
  return new SkeinError(error.code, error.message, status, error.param ?? String(error.details?.path ?? ""), error.details);
}

/** Returns the refusal that an answer holds. */
export async function refusalOf(answer: Response): Promise<SkeinError> {
  const text = await answer.text().catch(() => "");
  try {
    return refusalIn(text, answer.status);
  } catch {
    const { status } = answer;
    const said = text.slice(0, 300) || answer.statusText;
    if (status < 400 || status >= 500 || status === 408 || status === 429) return new SkeinError("unavailable", said, status);
    const code = { 401: "unauthorized", 403: "forbidden", 404: "not_found" }[status] ?? "invalid_request"; // of what stands before Skein
    return new SkeinError(code, `not an answer of Skein, with status ${status}: ${said}`, status);
  }
}
