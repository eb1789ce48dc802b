// statement-names.ts: finds the normative statements of MQTT that names of tests contain.

import { glob, readFile } from 'node:fs/promises'

/** Numbers without `MQTT-` in the files that match `places`. */
export async function numbersInNames(places: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>()
  for await (const path of glob(places)) {
    const text = await readFile(path, 'utf8')
    // In a name, or alone in a table whose test has it in its name.
    for (const [, number] of text.matchAll(/(?:\[MQTT-|^ +(?:\[)?')(\d[.-]\d+(?:\.\d+)?-\d+)['\]]/gm))
      if (number !== undefined) found.add(number)
  }
  return found
}
