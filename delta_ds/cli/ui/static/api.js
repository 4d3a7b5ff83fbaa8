// Requests to the server of this page, by names relative to its address.

export class ApiError extends Error {
  constructor(body) {
    super(body.message);
    this.condition = body.condition;
  }
}

/** An answer of the server. Parameters that are null, undefined or empty are left out. */
export async function ask(name, parameters = {}, signal = undefined) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, String(value));
  }
  let response;
  let body;
  try {
    response = await fetch(`api/${name}?${query}`, { signal, cache: "no-store", credentials: "omit" });
    body = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError({ message: "The server does not answer: is pydelta ui still running?", condition: null });
  }
  if (!response.ok) throw new ApiError(body);
  return body;
}
