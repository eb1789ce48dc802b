import { testHostileBodies } from './hostile-bodies.ts'

testHostileBodies(300)
