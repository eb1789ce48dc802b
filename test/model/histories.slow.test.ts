import { describe } from 'vitest'
import { testHistories } from './histories.ts'

describe('the spool over random histories of traffic, power cuts and failed writes', () => {
  testHistories({ firstSeed: 1, sequences: 300 })
})
