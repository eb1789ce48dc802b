// One vocabulary: the words of the glossary in src/README.md, and none of the words that they replaced.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

/** Each retired word with the term that replaced it. */
const retired: readonly (readonly [RegExp, string])[] = [
  [/^roads?$/, 'pipeline, or the path from PUBLISH to delivered'],
  [/^(couriers?|outposts?)$/, 'batch sender, sender worker'],
  [/^(bury|buries|buried|burying)$/, 'to make a dead letter'],
  [/^fates?$/, 'settlement'],
  [/^(whoever|whosoever|somebody)$/, 'the name of the person or part'],
  [/^told$/, 'logged, answered, reported'],
  [/^strangers?$/, 'orphaned provider, unknown client'],
  [/^mischief$/, 'fault injection'],
  [/^(desks?|keepers?|tally|tallies|tallied)$/, 'reservations, supervisor, counter'],
  [/^(lest|hence|whence|thereof)$/, 'plain words'],
  [/^unfit$/, 'invalid'],
]

/** Where a retired word has its usual meaning. */
const usual = /on the road|on roads|told apart/

/** Names of version 0.1.0, which UPGRADING.md translates. */
const former = /`(?:spool\.lettersFull|LETTER_UNFIT)`/g

/** Identifiers that say letter and mean dead letter: `lettersFull`, `LetterFilter`; not `isLetter`. */
const letterIdentifier = /\b(?:letters?[A-Z]\w*|Letters?[A-Z]\w*)\b/

const root = resolve(import.meta.dirname, '../..')
const places = ['src', 'docs', 'systemd']
const singles = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'UPGRADING.md',
  'package.json',
]

const files = [
  ...places.flatMap((place) =>
    readdirSync(join(root, place), { recursive: true, encoding: 'utf8' }).map((name) =>
      join(root, place, name),
    ),
  ),
  ...singles.map((name) => join(root, name)),
].filter((file) => statSync(file).isFile())

/** Words of prose and the parts of identifiers: `roadOf` is road and of. */
function wordsIn(text: string): string[] {
  return text
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
}

function problemsIn(where: string, text: string): string[] {
  return text.split('\n').flatMap((original, index) => {
    const line = original.replaceAll(former, '')
    const found = usual.test(line)
      ? []
      : wordsIn(line).flatMap((word) => {
          const rule = retired.find(([pattern]) => pattern.test(word))
          return rule === undefined ? [] : [`${word} (write: ${rule[1]})`]
        })
    const letter = letterIdentifier.exec(line)?.[0]
    if (letter !== undefined && letter !== 'lettersEnd') found.push(`${letter} (write: deadLetter)`)
    return found.map((problem) => `${where}:${index + 1} ${problem}`)
  })
}

describe('the vocabulary', () => {
  test('has no retired word in names, code, comments or texts', () => {
    const problems = files.flatMap((file) => {
      const name = relative(root, file)
      return [...problemsIn(name, name), ...problemsIn(name, readFileSync(file, 'utf8'))]
    })
    expect(problems).toEqual([])
  })

  test('reports a retired word, also inside an identifier', () => {
    expect(problemsIn('x.ts', 'const roadOf = deadLetters\nif (lettersFull) // on the road')).toEqual([
      'x.ts:1 road (write: pipeline, or the path from PUBLISH to delivered)',
      'x.ts:2 lettersFull (write: deadLetter)',
    ])
  })

  test('has a glossary with one line for each term', () => {
    const text = readFileSync(join(root, 'src/README.md'), 'utf8')
    const glossary = text.slice(
      text.indexOf('## Glossary'),
      text.indexOf('\n## ', text.indexOf('## Glossary') + 4),
    )
    const terms = [...glossary.matchAll(/^\| ([a-z][^|]*?) +\| /gm)].map((match) => match[1])
    expect(terms.length).toBeGreaterThan(25)
    expect(new Set(terms).size).toBe(terms.length)
  })
})
