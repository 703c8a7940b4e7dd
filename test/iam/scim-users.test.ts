import { scimUsersSuite } from "./scim-users-suite.js";

scimUsersSuite("people whom directories have sent");
