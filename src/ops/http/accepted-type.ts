// accepted-type.ts: what the client wants to get, by the header `Accept`.

/** JSON for programs that say nothing or take everything. */
export function prefersHtml(accept: string | undefined): boolean {
  const quality = new Map<string, number>()
  for (const part of (accept ?? '').toLowerCase().split(',')) {
    const [type = '', ...parameters] = part.split(';').map((one) => one.trim())
    const given = parameters.map((one) => /^q=([\d.]+)$/.exec(one)?.[1]).find((one) => one !== undefined)
    quality.set(type, given === undefined ? 1 : Number(given))
  }
  const any = quality.get('*/*') ?? 0
  const html = quality.get('text/html') ?? quality.get('text/*') ?? any
  const json = quality.get('application/json') ?? quality.get('application/*') ?? any
  return html > json
}

/** What EventSource sends. Clients that take everything get the other form. */
export function wantsEvents(accept: string | undefined): boolean {
  return (accept ?? '').toLowerCase().includes('text/event-stream')
}
