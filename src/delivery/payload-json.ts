// payload-json.ts: reads members of a payload from its JSON, for what only few payloads need.

/** Null where it is not JSON: an edited payload may be anything. */
export function parsedPayload(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

export function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as Record<string, unknown>)[name]
}

/** The id of the device, else of the asset; null without one. */
export function deviceOf(payload: unknown): string | null {
  const name =
    member(member(payload, 'deviceIdentifier'), 'id') ?? member(member(payload, 'assetIdentifier'), 'id')
  return typeof name === 'string' ? name : null
}
