// reference-entries.ts: the options in the reference of the config, as a reader finds them: with a heading of their
// own, in the list below that of the option that holds them, or by the place that the list refers to.

/** By path without `[]`: for each entry its lines: the type, and what is said of it. */
export type ReferenceEntries = Map<string, string[][]>

export function referenceEntries(text: string): ReferenceEntries {
  const entries: ReferenceEntries = new Map()
  const elsewhere: { path: string; place: string; name: string }[] = []
  for (const part of text.split(/^#{2,3} /m).slice(1)) {
    const [heading = '', ...lines] = part.split('\n').filter((line) => line !== '')
    const path = plain(heading)
    add(
      path,
      lines.filter((line) => !line.startsWith('- ')),
    )
    for (const line of lines) {
      const [, place, names] = /^- as in `([^`]+)`: (.*)$/.exec(line) ?? []
      const [, name = '', type = '', said] = /^- `([^`]+)`: (.*?)(?:\. (.*))?$/.exec(line) ?? []
      if (place !== undefined && names !== undefined)
        for (const one of names.split(', ')) elsewhere.push({ path, place: plain(place), name: plain(one) })
      else if (name !== '') add(`${path}.${plain(name)}`, said === undefined ? [type] : [type, said])
    }
  }
  // Places refer to earlier ones.
  for (const { path, place, name } of elsewhere)
    for (const [key, found] of allBelow(`${place}.${name}`))
      for (const lines of found) add(path + key.slice(place.length), lines)
  return entries

  function allBelow(path: string): [string, string[][]][] {
    return [...entries].filter(([key]) => key === path || key.startsWith(`${path}.`))
  }

  function add(path: string, lines: string[]): void {
    entries.set(path, [...(entries.get(path) ?? []), lines])
  }
}

export function plain(path: string): string {
  return path.replaceAll('`', '').replaceAll('[]', '')
}
